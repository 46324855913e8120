"""Windows of a sequence whose targets are not what follows the inputs."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.source.expressions import tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.slices import (
    Window,
    at_most_zero,
    difference,
    only_value,
    windows,
)
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_SPLIT = r"(train|val|valid|test|batch|all)"
_INPUT = re.compile(
    rf"^({_SPLIT}_)?(x|xs|xb|inp|inps|inputs?|feats?|features|src|windows?|seqs?|sequences?"
    rf"|history|past)(_({_SPLIT}|list))?$", re.I
)  # fmt: skip
_TARGET = re.compile(
    rf"^({_SPLIT}_)?(y|ys|yb|tgts?|targets?|labels?|future)(_({_SPLIT}|list))?$", re.I
)
_SAME_ON_PURPOSE = re.compile(
    r"auto_?enc|reconstr|denois|imput(e|ing|ation)|contrastive|anomal|vae|mlm|mask(ed|ing)(?!_fill)",
    re.I,
)
_SHIFTS = re.compile(r":-1[\],]|: ?-1[\],]|shift|labels=|roll\(")
_CLASSES = re.compile(r"cross_entropy|CrossEntropyLoss|nll_loss|NLLLoss")
_LOSSES = re.compile(r"loss|crit|entropy|^ce$", re.I)
_STATISTICS = {"mean", "std", "min", "max", "var", "median", "amax", "amin"}
_GATHERED = {"append", "extend"}


class _Pairs(NamedTuple):
    """What a function, or the module, makes inputs of, and what targets."""

    inputs: list[ast.expr]
    targets: list[ast.expr]

    def add(self, name: str, value: ast.expr) -> None:
        """Keep a value of a name that says which of the two it is."""
        if _INPUT.match(name):
            self.inputs.append(value)
        elif _TARGET.match(name):
            self.targets.append(value)


@reads
def misplaced(source: Source) -> Iterator[Pattern]:
    """`x = s[i : i + n]` with a target inside of it, equal to it, or two elements later."""
    for scope, (inputs, targets) in _pairs(source).items():
        if not inputs or not targets:
            continue
        known = [window for value in inputs for window in _windows(source, scope, value)]
        every = [window for value in targets for window in _windows(source, scope, value)]
        heads = len({target.node for target in every})
        for target in every if known else ():
            kind = _relation(target, known)
            if kind and not _is_on_purpose(source, scope, kind, heads):
                yield source.pattern(kind, target.node, target.base)
                break


def _pairs(source: Source) -> dict[ast.AST, _Pairs]:
    """Return the inputs and targets of all scopes, by assignments, lists and samples."""
    found = {scope: _Pairs([], []) for scope in source.scopes}
    for scope, pairs in found.items():
        for name, value, _ in source.assigned(scope):
            pairs.add(name, value)
    for call in source.of(ast.Call):
        if called(call) in _GATHERED and len(call.args) == 1:
            name = dotted(call.func).rpartition(".")[0]
            found[source.scope(call)].add(name, call.args[0])
    for node in source.of(ast.Return):
        scope = source.scope(node)
        is_sample = getattr(scope, "name", "") == "__getitem__" and isinstance(
            node.value, ast.Tuple
        )
        if is_sample and isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
            found[scope].inputs.append(node.value.elts[0])
            found[scope].targets.append(node.value.elts[1])
    return found


def _is_on_purpose(source: Source, scope: ast.AST, kind: str, targets: int = 1) -> bool:
    """Whether a file that has such targets may want them."""
    text = source.code(source.tree)
    if kind == "skipped target":  # of numbers, a horizon; several, one for each head
        return not _CLASSES.search(text) or targets > 1
    if kind in ("target is input", "unshifted input") and _is_shifted_later(source, scope, kind):
        return True
    return bool(_SAME_ON_PURPOSE.search(text))


def _windows(source: Source, scope: ast.AST, value: ast.expr, depth: int = 0) -> list[Window]:
    """Return the windows that an expression, and the names in it, are made of."""
    found = []
    inside = {each for node in source.walk(value) if isinstance(node, ast.Subscript)
              for part in (node.slice, node.value) for each in source.walk(part)}  # fmt: skip
    inside |= {each for node in source.walk(value) if isinstance(node, ast.comprehension)
               for each in source.walk(node.iter)}  # fmt: skip
    for statistic in source.walk(value) if depth else ():
        if called(statistic) in _STATISTICS:
            inside |= set(source.walk(statistic))  # a scale, which is computed of more
    for node in source.walk(value):
        if isinstance(node, ast.Subscript):
            found += windows(source, scope, node) if node not in inside else []
        elif isinstance(node, ast.Name) and depth < 3 and node not in inside:
            made, home = only_value(source, scope, node.id)
            if made is not None and home is scope:
                found += _windows(source, scope, made, depth + 1)
    return found


def _relation(target: Window, inputs: list[Window]) -> str:
    """Return how a target lies in relation to an input that is a window of the same array."""
    for window in inputs:
        if window.is_element or window.others != target.others or window.node is target.node:
            continue
        if window.base != target.base:
            continue
        first = difference(target.start, window.start)
        last = difference(target.stop, window.stop)
        if not first and not last:
            return "" if target.is_element else "target is input"
        if first == last and set(first) == {""} and not target.is_element:
            return "skipped target" if first[""] > 1 else ""
        moves = {*window.start} - {""}  # the place of the window, such as `i`
        is_before = bool(first) and at_most_zero(first)
        if moves and not is_before and at_most_zero(last):
            return "target inside"
    return ""


def _is_shifted_later(source: Source, scope: ast.AST, kind: str) -> bool:
    """Whether another part of the file moves targets, or takes the last elements away.

    The tokens that are also the targets of a decoder can only be moved by the model itself.
    """
    models = source.module_classes.values()
    return any(
        source.scope(node) is not scope
        and (kind == "target is input" or any(each in models for each in source.above(node)))
        and _SHIFTS.search(ast.unparse(node))
        for node in source.of(ast.Subscript, ast.Call)
    )


@reads
def future_scale(source: Source) -> Iterator[Pattern]:
    """`m = s[t : t + L + H].mean()` and an input `s[t : t + L] - m`."""
    for scope, (inputs, _) in _pairs(source).items():
        for name, value, statement in source.assigned(scope) if inputs else ():
            wholes = _summarised(source, scope, value)
            if any(
                _is_scaled(source, scope, each, name, whole) for each in inputs for whole in wholes
            ):
                yield source.pattern("future scale", statement, name)
                break


def _summarised(source: Source, scope: ast.AST, value: ast.expr) -> list[Window]:
    """Return the windows whose mean or the like a value is: `s[a:b].std() + 1e-6`."""
    while isinstance(value, ast.BinOp) and isinstance(value.right, ast.Constant):
        value = value.left
    if called(value) not in _STATISTICS or not isinstance(value, ast.Call):
        return []
    of = tensor_of(value)
    if isinstance(of, ast.Name):
        of = only_value(source, scope, of.id)[0]
    return windows(source, scope, of) if isinstance(of, ast.Subscript) else []


def _is_scaled(source: Source, scope: ast.AST, value: ast.expr, name: str, whole: Window) -> bool:
    """Whether an input is a shorter window of the same array that a statistic is applied to."""
    for node in source.walk(value):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub | ast.Div):
            continue
        if dotted(node.right) != name:
            continue
        for window in _windows(source, scope, node.left):
            further = difference(window.stop, whole.stop)
            if (
                (window.base, window.others) == (whole.base, whole.others)
                and not difference(window.start, whole.start)
                and further
                and at_most_zero(further)
            ):
                return True
    return False


@reads
def unshifted(source: Source) -> Iterator[Pattern]:
    """`logits = decoder(tgt[:, 1:], h)` and a loss of them and `tgt[:, 1:]`."""
    for loss in source.of(ast.Call):
        if len(loss.args) < 2 or not _LOSSES.search(called(loss)):
            continue
        scope = source.scope(loss)
        wanted = _meant(source, scope, loss.args[1])
        if not _is_tail(wanted):
            continue
        shown = {each.id for each in source.walk(loss.args[0]) if isinstance(each, ast.Name)}
        for statement in source.of(ast.Assign):
            made = {each.id for target in statement.targets for each in source.walk(target)
                    if isinstance(each, ast.Name)}  # fmt: skip
            call = statement.value
            if source.scope(statement) is not scope or not isinstance(call, ast.Call):
                continue
            if not made & shown or statement.lineno > loss.lineno:
                continue
            given = [*call.args, *(each.value for each in call.keywords)]
            fed = {ast.unparse(_meant(source, scope, each)) for each in given}
            kind = "unshifted input"
            if ast.unparse(wanted) in fed and not _is_on_purpose(source, scope, kind):
                yield source.pattern(kind, statement, ast.unparse(wanted))


def _meant(source: Source, scope: ast.AST, value: ast.expr) -> ast.expr:
    """Return what an argument stands for, in any layout: `tgt[:, 1:].reshape(-1)`."""
    for _ in range(2):
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            value = value.func.value
        if isinstance(value, ast.Name):
            value = only_value(source, scope, value.id)[0] or value
    return value


def _is_tail(value: ast.expr) -> bool:
    """Whether an expression is a sequence without its first element: `y[:, 1:]`."""
    if not isinstance(value, ast.Subscript):
        return False
    parts = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
    return any(
        isinstance(part, ast.Slice)
        and part.upper is None
        and isinstance(part.lower, ast.Constant)
        and part.lower.value == 1
        for part in parts
    )
