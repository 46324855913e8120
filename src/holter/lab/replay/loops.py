"""The loop of a script that fetches batches: the `for` statement around its update."""

import ast
import linecache
from dataclasses import replace

from holter.lab.birth.sources import shortened
from holter.record.births import Birth


def delivered_by_loop(found: Birth, stepped_at: str) -> Birth:
    """Return a birth by a bad input that names the loop whose loader delivered the batch.

    `stepped_at` is file and line of the script's `optimizer.step()`.
    """
    loop = loop_around(stepped_at) if found.kind == "bad input" else None
    if loop is None:
        return found
    where, line = loop
    says = f"{found.says.removesuffix('.')}; the loader delivers it so, in `{line}` at {where}."
    return replace(found, says=says)


def loop_around(stepped_at: str) -> tuple[str, str] | None:
    """Return place and text of the innermost `for` statement around a line, or None."""
    file, _, number = stepped_at.rpartition(":")
    source = "".join(linecache.getlines(file)) if file else ""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    line = int(number) if number.isdigit() else 0
    loops = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.For) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if not loops:
        return None
    innermost = max(loops, key=lambda node: node.lineno)
    text = linecache.getline(file, innermost.lineno).strip()
    return f"{shortened(file)}:{innermost.lineno}", text
