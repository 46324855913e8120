"""Source: the syntax tree of a file, and what all readers ask of it."""

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar, cast

_Node = TypeVar("_Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef
_LONGEST = 160  # characters of a statement that are shown
_OPTIONS = {"args", "opt", "opts", "options", "cfg", "config", "conf", "flags", "FLAGS", "hparams"}
_MODULE = re.compile(r"(^|\.)\w*Module$")
_CELLS = re.compile(r"^# ?(%%|In ?\[)", re.M)  # of a notebook, which shows the last expression


class Pattern(NamedTuple):
    """One place at which a pattern was found."""

    kind: str
    line: int
    code: str
    subject: str = ""  # the name that it is about


class Source:
    """A file that was parsed: nodes with their parents, scopes and statements."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self.has_cells = bool(_CELLS.search(text))
        self._parents = {
            child: parent
            for parent in ast.walk(self.tree)
            for child in ast.iter_child_nodes(parent)
        }

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node that holds this one."""
        return self._parents.get(node)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around this one, the innermost first."""
        while (node := self._parents.get(node)) is not None:  # type: ignore[assignment]
            yield node

    def scope(self, node: ast.AST) -> ast.AST:
        """Return the function around a node, or the module."""
        return next((each for each in self.above(node) if isinstance(each, Function)), self.tree)

    def pattern(self, kind: str, node: ast.AST, subject: str = "") -> Pattern:
        """Return a pattern at a node, with the first line of its statement."""
        at: ast.AST = node
        if not isinstance(at, ast.stmt):
            at = next((each for each in self.above(at) if isinstance(each, ast.stmt)), at)
        shown = (
            node if isinstance(at, Function | ast.ClassDef | ast.For | ast.With | ast.If) else at
        )
        code = ast.unparse(shown).splitlines()[0]
        return Pattern(kind, getattr(node, "lineno", 0), code[:_LONGEST], subject)

    def is_optional(self, line: int) -> bool:
        """Whether a line runs only if an option of the script says so, or is never called."""
        return line in self._optional_lines

    @cached_property
    def _optional_lines(self) -> set[int]:
        lines: set[int] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.If) and _is_choice(node.test):
                for block in (node.body, node.orelse):
                    lines |= {n for part in block for n in range(part.lineno, _end(part) + 1)}
            elif isinstance(node, Function) and self._is_unused(node):
                lines |= set(range(node.lineno, _end(node) + 1))
        return lines

    def _is_unused(self, function: Function) -> bool:
        """Whether a function of the file's outermost level is named nowhere else in it."""
        if self._parents.get(function) is not self.tree or function.decorator_list:
            return False
        return function.name not in self._names

    @cached_property
    def _names(self) -> set[str]:
        loaded = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        return loaded | {
            node.attr for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)
        }

    def of(self, *kinds: type[_Node]) -> Iterator[_Node]:
        """Yield all nodes of some kinds."""
        every = (node for kind in kinds for node in self._by_kind.get(kind, ()))
        return cast("Iterator[_Node]", every)

    @cached_property
    def _by_kind(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: dict[type[ast.AST], list[ast.AST]] = {}
        for node in ast.walk(self.tree):
            found.setdefault(type(node), []).append(node)
        return found

    @cached_property
    def module_classes(self) -> dict[str, ast.ClassDef]:
        """The classes that are modules of torch, by name."""
        classes = [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]
        found: dict[str, ast.ClassDef] = {}
        for _ in range(2):  # one may be derived from another that comes later
            for each in classes:
                bases = [dotted(base) for base in each.bases]
                if any(_MODULE.search(base) or base in found for base in bases):
                    found[each.name] = each
        return found

    def makes_module(self, value: ast.AST) -> bool:
        """Whether an expression calls a class of `nn`, or a module class of this file."""
        if not isinstance(value, ast.Call):
            return False
        name = dotted(value.func)
        if name in self.module_classes:
            return True
        head, _, last = name.rpartition(".")
        return head in ("nn", "torch.nn") and last[:1].isupper() and last != "Parameter"

    def assigned(self, scope: ast.AST) -> Sequence[tuple[str, ast.expr, ast.stmt]]:
        """Return the plain assignments in a scope: name, value, statement."""
        return self._assigned.get(scope, ())

    @cached_property
    def _assigned(self) -> dict[ast.AST, list[tuple[str, ast.expr, ast.stmt]]]:
        found: dict[ast.AST, list[tuple[str, ast.expr, ast.stmt]]] = {}
        for node in self.of(ast.Assign):
            known = found.setdefault(self.scope(node), [])
            for target in node.targets:
                if isinstance(target, ast.Name):
                    known.append((target.id, node.value, node))
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    known += [
                        (name.id, value, node)
                        for name, value in zip(target.elts, node.value.elts, strict=False)
                        if isinstance(name, ast.Name)
                    ]
        return found

    def stores(self, scope: ast.AST, name: str) -> int:
        """Return how often a scope binds a name, in whatever way."""
        return sum(
            isinstance(node, ast.Name)
            and node.id == name
            and isinstance(node.ctx, ast.Store)
            and self.scope(node) is scope
            for node in ast.walk(scope)
        ) + (name in parameters_of(scope))

    @cached_property
    def defined(self) -> set[str]:
        """The names of all functions and methods of the file."""
        return {node.name for node in ast.walk(self.tree) if isinstance(node, Function)}

    @cached_property
    def scopes(self) -> list[ast.AST]:
        """The module and all functions."""
        functions = [node for node in ast.walk(self.tree) if isinstance(node, Function)]
        return [self.tree, *functions]


def _is_choice(test: ast.expr) -> bool:
    """Whether a condition asks for an option: `args.fault == "x"`."""
    for node in ast.walk(test):
        name = dotted(node)
        if name.rpartition(".")[0].rpartition(".")[2] in _OPTIONS or name in _OPTIONS:
            return True
        if isinstance(node, ast.Compare) and any(
            isinstance(side, ast.Constant) and isinstance(side.value, str)
            for side in (node.left, *node.comparators)
        ):
            return True
    return False


def parameters_of(scope: ast.AST) -> list[str]:
    """Return the names of a function's parameters, none of a module's."""
    if not isinstance(scope, Function):
        return []
    every = scope.args
    return [each.arg for each in (*every.posonlyargs, *every.args, *every.kwonlyargs)]


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def dotted(node: ast.AST) -> str:
    """Return a name with dots as it is written, or ""."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def called(node: ast.AST) -> str:
    """Return the last part of the name that is called, or ""."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def of_self(node: ast.AST) -> str:
    """Return the name of an attribute of `self`, or ""."""
    if isinstance(node, ast.Attribute) and dotted(node.value) == "self":
        return node.attr
    return ""
