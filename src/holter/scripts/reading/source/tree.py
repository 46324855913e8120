"""Source: the syntax tree of a file, and what all readers ask of it."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar, cast

_Node = TypeVar("_Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Binding = ast.Assign | ast.AugAssign | ast.AnnAssign
_LONGEST = 160  # characters of a statement that are shown
_OPTIONS = {"args", "opt", "opts", "options", "cfg", "config", "conf", "flags", "FLAGS", "hparams"}
_OF_MODELS = {"parameters", "named_parameters", "eval", "train"}
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
        self._parents: dict[ast.AST, ast.AST] = {}
        self._scopes: dict[ast.AST, ast.AST] = {self.tree: self.tree}  # the innermost around a node
        self._by_kind: dict[type[ast.AST], list[ast.AST]] = {}
        self._subtrees: dict[ast.AST, list[ast.AST]] = {}
        self._code: dict[ast.AST, str] = {}
        for node in self.walk(self.tree):
            self._by_kind.setdefault(type(node), []).append(node)
            inside = node if isinstance(node, Function) else self._scopes[node]
            for child in ast.iter_child_nodes(node):
                self._parents[child], self._scopes[child] = node, inside

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node that holds this one."""
        return self._parents.get(node)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around this one, the innermost first."""
        while (node := self._parents.get(node)) is not None:  # type: ignore[assignment]
            yield node

    def scope(self, node: ast.AST) -> ast.AST:
        """Return the function around a node, or the module."""
        return self._scopes.get(node, self.tree)

    def walk(self, node: ast.AST) -> list[ast.AST]:
        """Return what `ast.walk` yields of a node; kept, for nodes that several readers walk."""
        if node not in self._subtrees:
            self._subtrees[node] = list(ast.walk(node))
        return self._subtrees[node]

    def code(self, node: ast.AST) -> str:
        """Return what `ast.unparse` makes of a node; kept, for whole functions and classes."""
        if node not in self._code:
            self._code[node] = ast.unparse(node)
        return self._code[node]

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
        for branch in self.of(ast.If):
            if _is_choice(branch.test):
                for part in (*branch.body, *branch.orelse):
                    lines.update(range(part.lineno, _end(part) + 1))
        for function in self.of(*Function.__args__):
            if self._is_unused(function):
                lines.update(range(function.lineno, _end(function) + 1))
        return lines

    def _is_unused(self, function: Function) -> bool:
        """Whether a function of the file's outermost level is named nowhere else in it."""
        if self._parents.get(function) is not self.tree or function.decorator_list:
            return False
        return function.name not in self._names

    @cached_property
    def _names(self) -> set[str]:
        return {node.id for node in self.of(ast.Name)} | {
            node.attr for node in self.of(ast.Attribute)
        }

    def of(self, *kinds: type[_Node]) -> Iterator[_Node]:
        """Yield all nodes of some kinds."""
        every = (node for kind in kinds for node in self._by_kind.get(kind, ()))
        return cast("Iterator[_Node]", every)

    @cached_property
    def module_classes(self) -> dict[str, ast.ClassDef]:
        """The classes that are modules of torch, by name."""
        classes = list(self.of(ast.ClassDef))
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

    def named(self, name: str) -> Sequence[ast.expr]:
        """Return what the file assigns to a name, also as an attribute: `self.criterion`."""
        return self._named.get(name, ())

    @cached_property
    def _named(self) -> dict[str, list[ast.expr]]:
        found: dict[str, list[ast.expr]] = {}
        for assign in self.of(ast.Assign):
            pairs = [(each, assign.value) for each in assign.targets]
            for target, value in list(pairs):
                is_pair = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                if is_pair and len(target.elts) == len(value.elts):  # type: ignore[attr-defined]
                    pairs += zip(target.elts, value.elts, strict=True)  # type: ignore[attr-defined]
            named = [(dotted(each).rpartition(".")[2], value) for each, value in pairs]
            for name, value in dict.fromkeys(named):
                if name:
                    found.setdefault(name, []).append(value)
        return found

    def bindings(self, scope: ast.AST, name: str) -> Sequence[Binding]:
        """Return the assignments of a scope that bind a name, in the order of their lines."""
        return self._bindings.get((scope, name), ())

    @cached_property
    def _bindings(self) -> dict[tuple[ast.AST, str], list[Binding]]:
        found: dict[tuple[ast.AST, str], list[Binding]] = {}
        for node in sorted(self.of(*Binding.__args__), key=lambda each: each.lineno):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {part.id for target in targets for part in ast.walk(target)
                     if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}  # fmt: skip
            for name in names:
                found.setdefault((self.scope(node), name), []).append(node)
        return found

    def stores(self, scope: ast.AST, name: str) -> int:
        """Return how often a scope binds a name, in whatever way."""
        return self._stores[scope, name] + (name in parameters_of(scope))

    @cached_property
    def _stores(self) -> Counter[tuple[ast.AST, str]]:
        return Counter((self._scopes[node], node.id) for node in self.of(ast.Name)
                       if isinstance(node.ctx, ast.Store))  # fmt: skip

    @cached_property
    def is_script(self) -> bool:
        """Whether a file is run: it trains, or calls what it defines, at its outermost level."""
        if any("__name__" in ast.unparse(each.test) for each in self.tree.body
               if isinstance(each, ast.If)):  # fmt: skip
            return True
        return any(self.scope(call) is self.tree and
                   (called(call) == "backward" or dotted(call.func) in self._functions)
                   for call in self.of(ast.Call))  # fmt: skip

    @cached_property
    def _functions(self) -> set[str]:
        return {each.name for each in self.tree.body if isinstance(each, Function)}

    @cached_property
    def models(self) -> set[str]:
        """The names of models: what is trained or evaluated, or holds a module; none of losses."""
        found = [
            call.func.value
            for call in self.of(ast.Call)
            if isinstance(call.func, ast.Attribute)
            and call.func.attr in _OF_MODELS
            and not (call.func.attr == "eval" and call.args)  # code that a table evaluates
        ]
        for assign in self.of(ast.Assign):
            if self.makes_module(assign.value) and not called(assign.value).endswith("Loss"):
                found += assign.targets
        return {dotted(each).rpartition(".")[2] for each in found} - {"", "self"}

    @cached_property
    def trained(self) -> set[str]:
        """The names of tensors that take a gradient by themselves: `w.requires_grad_()`."""
        changed = [call.func.value for call in self.of(ast.Call)
                   if isinstance(call.func, ast.Attribute)
                   and call.func.attr == "requires_grad_"]  # fmt: skip
        changed += [
            each.value
            for assign in self.of(ast.Assign)
            for each in assign.targets
            if isinstance(each, ast.Attribute) and each.attr == "requires_grad"
        ]
        return {dotted(each) for each in changed} - {""}

    @cached_property
    def imported(self) -> dict[str, str]:
        """The package that each imported name is from: `{"np": "numpy", "f1_score": "sklearn"}`."""
        found: dict[str, str] = {}
        for node in self.of(ast.Import):
            for each in node.names:
                package = each.name.partition(".")[0]
                found[each.asname or package] = package
        for chosen in self.of(ast.ImportFrom):
            package = (chosen.module or "").partition(".")[0]
            found |= {each.asname or each.name: package for each in chosen.names}
        return found

    @cached_property
    def defined(self) -> set[str]:
        """The names of all functions and methods of the file."""
        return {node.name for node in self.of(*Function.__args__)}

    @cached_property
    def scopes(self) -> list[ast.AST]:
        """The module and all functions."""
        return [node for node in self.walk(self.tree) if isinstance(node, ast.Module | Function)]


def _is_choice(test: ast.expr) -> bool:
    """Whether a condition asks for an option: `args.fault == "x"`, but not for the main module."""
    if any(dotted(node) == "__name__" for node in ast.walk(test)):
        return False
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


def statement_around(source: Source, node: ast.AST) -> ast.AST:
    """Return the statement around a node, or the node itself if there is none."""
    return next((each for each in source.above(node) if isinstance(each, ast.stmt)), node)


def names_in(node: ast.AST) -> set[str]:
    """Return the names in an expression or statement."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def following(source: Source, node: ast.stmt) -> list[ast.stmt]:
    """Return the statements that follow in the same block."""
    above = source.parent(node)
    for field in ("body", "orelse"):
        block = getattr(above, field, None)
        if isinstance(block, list) and node in block:
            return block[block.index(node) + 1 :]
    return []


def root_name(node: ast.expr) -> str:
    """Return `x` of `x[i][j]`, or ""."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
