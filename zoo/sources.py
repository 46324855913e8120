"""A digest of the code behind a recording: what can change it, and nothing else.

Modules are found by following import statements from an entry point. Comments, docstrings and
layout do not count, so a sentence can be improved without recording the zoo again.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_SOURCE = Path(__file__).parent.parent / "src"
_RUN = ("holter.scripts.launching", "holter.watching.watch")
_TRY = ("holter.lab.running", "holter.lab.replay.investigating", "holter.scripts.recognition")
_CURES = ("holter.scripts.cures.bench", "holter.lab.cures.searching")


@cache
def digest_of(experiment: str | None) -> str:
    """A digest of the code that records a script, or that makes an experiment with it."""
    entries = _RUN if experiment is None else (*_RUN, *_TRY)
    if experiment == "cures":
        entries += _CURES
    digest = hashlib.sha256()
    for name in sorted(_closure(entries)):
        digest.update(f"{name}\0{_normalised(name)}\0".encode())
    return digest.hexdigest()


def _closure(entries: tuple[str, ...]) -> set[str]:
    """These modules and all of holter that they import, at whatever level of nesting."""
    reached: set[str] = set()
    frontier = list(entries)
    while frontier:
        name = frontier.pop()
        if name in reached or name == "holter" or _path(name) is None:
            continue  # the package's own __init__ only says where public names live
        reached.add(name)
        frontier += [name.rpartition(".")[0], *_imported(name)]
    return reached


def _imported(name: str) -> Iterator[str]:
    path = _path(name)
    assert path is not None
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and node.attr == "iter_modules":
            package = path.parent  # it loads all modules beside it by name
            yield from (f"{name}.{each.stem}" for each in package.glob("[a-z]*.py"))


@cache
def _normalised(name: str) -> str:
    path = _path(name)
    assert path is not None
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
    return ast.dump(tree)


def _path(name: str) -> Path | None:
    if not name.startswith("holter"):
        return None
    base = _SOURCE.joinpath(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.exists():
            return path
    return None
