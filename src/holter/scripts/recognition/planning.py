"""Plan: a training step taken apart into what makes the batch and what makes the loss of it."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from holter.scripts.recognition.kinds import (
    Namespace,
    global_names,
    has_graph,
    involves_model,
    is_data,
    is_library,
    is_plain,
    is_users,
    look_up,
    may_change,
)
from holter.scripts.recognition.lifting import Lifted, lift
from holter.scripts.recognition.names import dotted, reads, root, writes
from holter.scripts.recognition.sites import LOSS, Site, visible
from holter.scripts.recognition.slicing import exposed, slice_for
from holter.scripts.recognition.splitting import depends_on_model, uses_model, writes_inside

Roots = frozenset[str]


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement of the step that can be run by itself."""

    node: ast.stmt
    code: CodeType
    lines: range
    written: Roots  # variables
    touched: Roots  # variables that it writes or changes

    def holds(self, place: tuple[int, int]) -> bool:
        """Whether a line and column are inside of it."""
        begin = (self.node.lineno, self.node.col_offset)
        end = (self.node.end_lineno or begin[0], self.node.end_col_offset or begin[1])
        return begin <= place < end


@dataclass(frozen=True, eq=False)
class Variable:
    """A part of a batch: a variable of the script, or an expression such as `data[i : i + 64]`."""

    key: str
    name: str
    code: CodeType | None  # that computes it; None where it is a variable
    before: int  # the statement of the forward pass before which it is taken


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be run again for the loss of one site."""

    site: Site
    data: tuple[Statement, ...]
    forward: tuple[Statement, ...]
    variables: tuple[Variable, ...]
    others: Roots  # variables of the script that the forward pass reads as they are
    entering: Roots  # variables that the first statement of all begins with, and that vary
    in_place: bool  # whether it writes into what it is given


def plan(site: Site, frame: FrameType) -> Plan:
    """Take the step around a site apart, as it ran in `frame`."""
    names = visible(frame)

    def changes(call: ast.Call) -> bool:
        assert isinstance(call.func, ast.Attribute)
        receiver = dotted(call.func.value)
        value = None if receiver is None else look_up(receiver, names)
        return call.func.attr != "backward" and may_change(value, call.func.attr)

    kept, _ = slice_for(site.straight(), {LOSS}, changes)
    for statement in kept:
        for part in ast.walk(statement):
            if isinstance(part, ast.Await | ast.Yield | ast.YieldFrom):
                raise site.declined(statement, "yields to other code in the middle of the step")
    marks = depends_on_model(kept, names)
    data = [each for each, marked in zip(kept, marks, strict=True) if not marked]
    forward = [each for each, marked in zip(kept, marks, strict=True) if marked]
    varying = _varying(site)
    # What was deleted again is taken for a variable: it is taken before that.
    known = {name for name in names if _is_variable(names[name])} | (varying - set(names))
    wanted = varying & known
    lifted = lift(forward, names, varying, only_varying=True)
    chosen = [each for each in _entering(lifted, names, varying) if each[0] in wanted]
    seen = any(name not in names or is_data(names[name]) for name, _ in chosen)
    if not seen and not lifted.expressions:
        whole = _whole(forward, names, varying)
        if whole is not None:
            lifted, constant = whole
            chosen = [each for each in _entering(lifted, names, varying) if each[0] in wanted]
            chosen += constant
    entering = _entering(lifted, names, varying)
    variables = [Variable(name, name, None, place) for name, place in chosen]
    variables += [
        Variable(expression.key, expression.name, _expression(expression, site), expression.before)
        for expression in lifted.expressions
    ]
    taken = {variable.name for variable in variables}
    return Plan(
        site,
        tuple(_statement(each, site) for each in data),
        tuple(_statement(each, site) for each in lifted.statements),
        tuple(variables),
        frozenset(name for name, _ in entering if name not in taken),
        varying & _begun_with(kept, data, variables),
        any(writes_inside(each) & taken for each in lifted.statements),
    )


def _begun_with(
    statements: Sequence[ast.stmt], data: Sequence[ast.stmt], variables: Sequence[Variable]
) -> set[str]:
    """The variables that a step reads before it sets them, hidden ones too."""
    made = {each.name for statement in data for each in writes(statement)}
    return {root(each) for each in exposed(statements)} | {
        variable.name
        for variable in variables
        if variable.code is None and variable.name not in made
    }


def _whole(
    forward: Sequence[ast.stmt], names: Namespace, varying: Roots
) -> tuple[Lifted, list[tuple[str, int]]] | None:
    """Constants of the script that are the data of every step, if any of them reaches a model."""
    lifted = lift(forward, names, varying, only_varying=False)
    constant = [
        (name, place)
        for name, place in _entering(lifted, names, varying)
        if name not in varying and _is_input(names[name])
    ]
    given = {
        root(name)
        for statement in lifted.statements
        for call in ast.walk(statement)
        if isinstance(call, ast.Call) and _involves_model(call, names)
        for argument in (*call.args, *call.keywords)
        for name in reads(argument)
    }
    found = {name for name, _ in constant} | {expression.name for expression in lifted.expressions}
    lengths = [len(names[name]) for name, _ in constant if isinstance(names[name], Tensor)]
    if found & given or len(lengths) > len(set(lengths)):
        return lifted, constant
    return None


def _involves_model(call: ast.Call, names: Namespace) -> bool:
    return uses_model(ast.Expr(call), names)


def _varying(site: Site) -> Roots:
    """The names that a loop around the site sets, or the parameters of its function."""
    loops = site.source.loops(site.statement)
    if loops:
        return frozenset(each.name for each in writes(loops[-1]))
    code = site.code
    count = code.co_argcount + code.co_kwonlyargcount
    written = (each for statement in site.body for each in writes(statement))
    return frozenset((*code.co_varnames[:count], *(each.name for each in written)))


def _is_variable(value: object) -> bool:
    """Whether it can be part of a batch."""
    if isinstance(value, nn.Module | Optimizer | DataLoader | ModuleType | FunctionType | type):
        return False
    own = is_users(value) and not involves_model(value)
    own = own and not any(has_graph(each) for each in vars(value).values())  # a loss left in it
    return is_data(value) or is_plain(value) or own or isinstance(value, Mapping)


def _is_input(value: object) -> bool:
    """Whether a constant of the script can be the data it trains on."""
    return is_data(value) and not has_graph(value) and not _is_parameter(value)


def _is_parameter(value: object) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _entering(lifted: Lifted, names: Namespace, varying: Roots) -> list[tuple[str, int]]:
    """The variables that the forward pass reads first, and which statement does."""
    found: dict[str, int] = {}
    bound: set[str] = set()
    for place, statement in enumerate(lifted.statements):
        read = {root(each) for each in exposed([statement])}
        read |= {hidden for each in read for hidden in _hidden(names.get(each), names)}
        for name in sorted(read - bound):
            if name in names or name in varying:
                found.setdefault(name, place)
        bound |= {root(each.name) for each in writes(statement) if each.whole}
    return list(found.items())


def _hidden(value: object, names: Namespace, depth: int = 3) -> Iterator[str]:
    """The variables of the script that a function of it reads behind its arguments."""
    if not isinstance(value, FunctionType) or is_library(value.__code__.co_filename) or not depth:
        return
    outside = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    yield from (name for name, _ in outside if name in names)
    for name in global_names(value.__code__):
        if name in names and names[name] is value.__globals__.get(name):
            yield name
            yield from _hidden(names[name], names, depth - 1)


def _statement(node: ast.stmt, site: Site) -> Statement:
    node = _Mangled(site.source.class_around(site.statement)).visit(node)
    module = ast.Module([node], [])
    code = compile(module, site.source.file, "exec", dont_inherit=True)
    lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    written = frozenset(root(each.name) for each in writes(node))
    return Statement(node, code, lines, written, written | writes_inside(node))


def _expression(lifted: Any, site: Site) -> CodeType:
    body = ast.Expression(_Mangled(site.source.class_around(site.statement)).visit(lifted.node))
    return compile(body, site.source.file, "eval", dont_inherit=True)


class _Mangled(ast.NodeTransformer):
    """Writes out private names, as Python does inside of a class."""

    def __init__(self, owner: str | None) -> None:
        self._prefix = None if owner is None else f"_{owner.lstrip('_')}"

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if self._prefix and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = self._prefix + node.attr
        return node
