"""Two branches that predict each other: branches without a stop of the gradient, or own views."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_STOPPED = re.compile(
    r"detach|stop_?grad|ema|momentum_(enc|net|model|update)|target_(net|enc|proj)|teacher|copy\.",
    re.I,
)
_NEGATIVES = re.compile(r"cross_entropy|logsumexp|queue|off_diag|covariance|CrossEntropy", re.I)
_SIMILARITY = re.compile(r"cosine_similarity|CosineSimilarity|normalize|mse_loss|\.norm\(")


class _Compared(NamedTuple):
    call: ast.Call
    prediction: str
    other: str


@reads
def unstopped(source: Source) -> Iterator[Pattern]:
    """`d(p1, z2) + d(p2, z1)` with a gradient through `z`: both branches may become constant."""
    text = source.code(source.tree)
    if _STOPPED.search(text) or not _SIMILARITY.search(text) or _NEGATIVES.search(text):
        return
    for scope in source.scopes:
        compared = list(_compared(source, scope))
        predicted = _predicted(source, scope)
        for one in compared:
            for two in compared:
                is_pair = (
                    one.call is not two.call
                    and one.call.lineno <= two.call.lineno
                    and predicted.get(one.prediction) == two.other
                    and predicted.get(two.prediction) == one.other
                    and one.other != two.other
                )
                are_alike = is_pair and all(
                    _same_maker(source, scope, names)
                    for names in ((one.prediction, two.prediction), (one.other, two.other))
                )
                if are_alike and (one.call.lineno, one.call.col_offset) < (
                    two.call.lineno, two.call.col_offset
                ):  # fmt: skip
                    yield source.pattern("unstopped branch", one.call, one.other)


@reads
def own_branch(source: Source) -> Iterator[Pattern]:
    """`d(p1, z1) + d(p2, z2)`: each branch predicts itself, and no other view."""
    for scope in source.scopes:
        predicted = _predicted(source, scope)
        own = [each for each in _compared(source, scope)
               if predicted.get(each.prediction) == each.other]  # fmt: skip
        names = {each.other for each in own}
        if len(names) == 2 and _same_maker(source, scope, (min(names), max(names))):
            yield source.pattern("own branch", own[0].call, own[0].other)


def _same_maker(source: Source, scope: ast.AST, names: tuple[str, str]) -> bool:
    """Whether two names are what the same network returns."""
    makers = {dotted(value.func) for name, value in _makers(source, scope) if name in names}
    known = {name for name, _ in _makers(source, scope)}
    return len(makers) == 1 and known >= set(names) and makers != {""}


def _makers(source: Source, scope: ast.AST) -> list[tuple[str, ast.Call]]:
    """Return the calls that names are assigned, also several at once."""
    found = [(name, value) for name, value, _ in source.assigned(scope)]
    found += [(dotted(each), assign.value) for assign in source.of(ast.Assign)
              if source.scope(assign) is scope and isinstance(assign.value, ast.Call)
              and isinstance(assign.targets[0], ast.Tuple)
              for each in assign.targets[0].elts]  # fmt: skip
    return [(name, value) for name, value in found
            if isinstance(value, ast.Call) and source.stores(scope, name) == 1]  # fmt: skip


def _predicted(source: Source, scope: ast.AST) -> dict[str, str]:
    """Return what each prediction is made of: `p1 = predictor(z1)`, `z1, p1 = model(x1)`."""
    found = {}
    for name, value in _makers(source, scope):
        if len(value.args) == 1 and isinstance(value.args[0], ast.Name):
            found[name] = value.args[0].id
    for assign in source.of(ast.Assign):
        target = assign.targets[0]
        if source.scope(assign) is not scope or not isinstance(assign.value, ast.Call):
            continue
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            names = [dotted(each) for each in target.elts]
            heads = [re.match(r"p(red)?_?(?=\d|a$|b$)", each) for each in names]
            if bool(heads[0]) != bool(heads[1]):
                prediction, other = names if heads[0] else names[::-1]
                found[prediction] = other
    return found


def _compared(source: Source, scope: ast.AST) -> Iterator[_Compared]:
    """Yield comparisons of two names by a function of similarity."""
    functions = {each.name: each for each in source.of(*Function.__args__)}
    for call in source.of(ast.Call):
        if source.scope(call) is not scope or len(call.args) < 2:
            continue
        one, other = (_bare(each) for each in call.args[:2])
        made = functions.get(called(call))
        values = source.named(called(call))
        text = source.code(made) if made is not None else dotted(call.func)
        text += "".join(f" {called(each)}" for each in values)
        if one and other and _SIMILARITY.search(text):
            yield _Compared(call, one, other)


def _bare(node: ast.expr) -> str:
    if isinstance(node, ast.Call) and called(node) == "detach":
        node = node.func.value if isinstance(node.func, ast.Attribute) else node
    return node.id if isinstance(node, ast.Name) else ""
