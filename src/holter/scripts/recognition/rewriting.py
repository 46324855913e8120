"""The statements of a script that write to weights or gradients around an update, to run again."""

import ast
import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from holter.lab.randomness import RandomState
from holter.lab.setup import ScriptWrite
from holter.scripts.recognition.kinds import look_up, may_change
from holter.scripts.recognition.names import dotted
from holter.scripts.recognition.sites import visible
from holter.scripts.recognition.slicing import exposed, slice_for
from holter.scripts.recognition.sources import Source, source_of
from holter.scripts.recognition.verifying import same
from holter.scripts.recognition.writes import Write

Given = Callable[[], dict[str, Any]]  # the variables of the step that was run last


def repeatable(write: Write, given: Given, *, gradients: bool) -> ScriptWrite:
    """Find the statements of a write, and prove on what was seen that they do it again."""
    source = source_of(write.frame)
    line = min(write.lines)
    if source is None:
        return ScriptWrite(f"{Path(write.frame.f_code.co_filename).name}:{line}", None)
    where = f"{Path(source.file).name}:{line}: {source.text.splitlines()[line - 1].strip()}"
    codes = _codes(source, write)
    if not codes:
        return ScriptWrite(where, None)

    def run() -> None:
        names = {**visible(write.frame), **given()}
        with contextlib.redirect_stdout(sys.stderr):
            for code in codes:
                exec(code, names)  # noqa: S102  (the script's own statements)

    return ScriptWrite(where, run if _gives(write, run, gradients=gradients) else None)


def _gives(write: Write, run: Callable[[], None], *, gradients: bool) -> bool:
    random = RandomState.now()
    kept = [parameter.detach().clone() for parameter in write.parameters]
    try:
        if gradients:
            for parameter, value in zip(write.parameters, write.before, strict=True):
                parameter.grad = value.clone()
        else:
            _fill(write.parameters, write.before)
        run()
        now = [p.grad if gradients else p.detach() for p in write.parameters]
        return same([tensor for tensor in now if tensor is not None], list(write.after))
    except Exception:  # they depend on what is no more
        return False
    finally:
        _fill(write.parameters, kept)
        for parameter in write.parameters if gradients else ():
            parameter.grad = None
        random.restore()


def _fill(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for tensor, value in zip(tensors, values, strict=True):
            tensor.copy_(value)


def _codes(source: Source, write: Write) -> list[CodeType]:
    """Return the statements that write, with those before them that they depend on."""
    names = visible(write.frame)

    def changes(call: ast.Call) -> bool:
        assert isinstance(call.func, ast.Attribute)
        receiver = dotted(call.func.value)
        value = None if receiver is None else look_up(receiver, names)
        return may_change(value, call.func.attr)

    kept, _ = _gathered(_block(source, write), write.lines, set(), changes)
    if any(_holds(statement, write.began) for statement in kept):
        return []  # they cannot be told from the update itself
    return [
        compile(ast.Module([statement], []), source.file, "exec", dont_inherit=True)
        for statement in kept
    ]


def _block(source: Source, write: Write) -> list[ast.stmt]:
    """Return the body of the innermost loop that holds both the write and the update."""
    lines = (*write.lines, write.began)
    first = write.frame.f_code.co_firstlineno
    around: list[Any] = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno >= first - 1
        and all(_holds(node, line) for line in lines)
    ]
    innermost: Any = max(around, key=lambda node: node.lineno, default=source.tree)
    body: list[ast.stmt] = innermost.body
    return body


def _gathered(
    block: Sequence[ast.stmt],
    lines: frozenset[int],
    needed: set[str],
    changes: Callable[[ast.Call], bool],
) -> tuple[list[ast.stmt], set[str]]:
    """Keep statements that hold the lines, without the conditions around them, and their needs.

    A condition may count steps; when it held is known from the recording.
    """
    kept: list[ast.stmt] = []
    for statement in reversed(block):
        if not any(_holds(statement, line) for line in lines):
            if kept:
                found, needed = slice_for([statement], needed, changes)
                kept[:0] = found
        elif isinstance(statement, ast.If):
            for branch in (statement.body, statement.orelse):
                found, needed = _gathered(branch, lines, needed, changes)
                kept[:0] = found
        else:
            kept.insert(0, statement)
            needed = needed | exposed([statement])
    return kept, needed


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)
