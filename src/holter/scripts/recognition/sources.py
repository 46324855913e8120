"""The source of running code: which call a frame is at, and what it stands in."""

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from types import CodeType, FrameType

from holter.scripts.recognition.kinds import is_library

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module
Loop = ast.For | ast.While | ast.AsyncFor


@dataclass(frozen=True, eq=False)
class Source:
    """The tree of a file, with the way up from each node."""

    file: str
    text: str
    tree: ast.Module
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the inside out."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function(self, node: ast.AST) -> Function:
        """The innermost function around a node, or the file."""
        return next(
            each
            for each in self.above(node)
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module)
        )

    def loops(self, node: ast.AST) -> list[Loop]:
        """The loops around a node in the same function, from the inside out."""
        found: list[Loop] = []
        for each in self.above(node):
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                break
            if isinstance(each, ast.For | ast.While | ast.AsyncFor):
                found.append(each)
        return found

    def class_around(self, node: ast.AST) -> str | None:
        """The name of the class whose method a node stands in."""
        function = self.function(node)
        around = self.parents.get(function)
        return around.name if isinstance(around, ast.ClassDef) else None

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement a node is part of."""
        if isinstance(node, ast.stmt):
            return node
        return next(each for each in self.above(node) if isinstance(each, ast.stmt))

    def said(self, node: ast.AST) -> str:
        """A node as it is written."""
        return ast.get_source_segment(self.text, node) or ast.unparse(node)


def source_of(frame: FrameType) -> Source | None:
    """The source of the file a frame runs, if there is one."""
    file = frame.f_code.co_filename
    linecache.lazycache(file, frame.f_globals)
    return _parsed(file, "".join(linecache.getlines(file, frame.f_globals)))


@cache
def _parsed(file: str, text: str) -> Source | None:
    if not text:
        return None
    try:
        tree = ast.parse(text, file)
    except (SyntaxError, ValueError):
        return None
    found = Source(file, text, tree)
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            found.parents[child] = node
    return found


def call_at(frame: FrameType) -> tuple[Source, ast.Call] | None:
    """The call that a frame is in the middle of."""
    source = source_of(frame)
    call = None if source is None else _call(source, frame.f_code, frame.f_lasti)
    return None if source is None or call is None else (source, call)


@cache
def _call(source: Source, code: CodeType, instruction: int) -> ast.Call | None:
    positions = next(islice(code.co_positions(), instruction // 2, None), None)
    if positions is None or positions[1] is None:
        return None
    end = positions[1], positions[3]
    # By its end: of a chain over several lines, Python says it begins at the last attribute.
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and (node.end_lineno, node.end_col_offset) == end:
            return node
    return None


def script_line(frame: FrameType) -> str:
    """Return file and line of the script that lead to a frame, or ""."""
    around: FrameType | None = frame
    while around is not None and is_library(around.f_code.co_filename):
        around = around.f_back
    return "" if around is None else f"{around.f_code.co_filename}:{around.f_lineno}"


def step_line(frame: FrameType) -> str:
    """Return file and line of the script's `.step()` that leads to a frame, or ""."""
    around: FrameType | None = frame
    while around is not None and is_library(around.f_code.co_filename):
        around = around.f_back
    if around is None:
        return ""
    file, line = around.f_code.co_filename, around.f_lineno
    return f"{file}:{line}" if ".step(" in linecache.getline(file, line) else ""
