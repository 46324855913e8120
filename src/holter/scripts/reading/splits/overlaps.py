"""Parts of the data that are meant to be apart, and share samples."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.source.expressions import resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.split_names import is_held_out, is_training
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    parameters_of,
)

_SPLITTING = {"random_split", "train_test_split"}
_SEEDING = {"manual_seed", "seed", "seed_everything", "set_seed", "seed_all"}
_GENERATORS = {"default_rng", "RandomState", "Random", "manual_seed", "seed"}
# Draws from the generators of the libraries themselves.
_TORCH = re.compile(r"torch\.(rand|normal|bernoulli|multinomial)")
_NUMPY = re.compile(r"(np|numpy)\.random\.[a-z_]+$")
_COUNT = re.compile(
    r"^(n|num|count|size|length|total|samples|rows)$|^(n|num)_|_(count|size)$", re.I
)
_TRANSFORM = re.compile(r"transform|augment|(^|_)(aug|tf|tfm|tfms)(_|$)", re.I)


@reads
def drawn_twice(source: Source) -> Iterator[Pattern]:
    """`train, _ = random_split(a, ...)` and `_, val = random_split(b, ...)`, split differently."""
    kept: dict[ast.AST, dict[int, tuple[ast.Assign, ast.Call]]] = {}
    for node in source.of(ast.Assign):
        target, value = node.targets[0], node.value
        if not isinstance(value, ast.Call) or called(value) not in _SPLITTING:
            continue
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            used = [n for n, each in enumerate(target.elts) if dotted(each).strip("_")]
            if len(used) == 1:
                kept.setdefault(source.scope(node), {})[used[0]] = (node, value)
    for scope, parts in kept.items():
        if len(parts) < 2:
            continue
        (first, one), (second, other) = sorted(parts.values(), key=lambda each: each[0].lineno)
        is_seeded = any(
            called(call) in _SEEDING and first.lineno < call.lineno < second.lineno
            for call in source.of(ast.Call)
        )
        if is_seeded or (_seed(one) and _seed(one) == _seed(other)):
            continue
        if _is_same_data(source, scope, one, other):
            yield source.pattern("split twice", second, called(one))


def _seed(call: ast.Call) -> str:
    """Return the seed of a split as it is written; a generator that goes on is none."""
    for each in call.keywords:
        is_none = isinstance(each.value, ast.Constant) and each.value.value is None
        if each.arg == "random_state" and not is_none:
            return ast.unparse(each.value)
        if each.arg == "generator" and called(each.value) == "manual_seed":
            return ast.unparse(each.value)
        if each.arg == "shuffle" and isinstance(each.value, ast.Constant) and not each.value.value:
            return "in order"
    return ""


def _is_same_data(source: Source, scope: ast.AST, one: ast.Call, other: ast.Call) -> bool:
    """Whether two splits are of one data set, or of two that differ in their transforms only."""
    if not one.args or not other.args:
        return False
    first, second = (resolved(source, scope, each.args[0]) for each in (one, other))
    if not isinstance(first, ast.Call) or not isinstance(second, ast.Call):
        return ast.unparse(first) == ast.unparse(second)
    return _which_data(first) == _which_data(second)


def _which_data(call: ast.Call) -> tuple[str, ...]:
    """Return what says which data a data set holds: its class, the first argument and flags."""
    flags = [
        ast.unparse(each)
        for each in call.keywords
        if isinstance(each.value, ast.Constant) and not _TRANSFORM.search(each.arg or "")
    ]
    return (called(call), *(ast.unparse(each) for each in call.args[:1]), *sorted(flags))


class _Draw(NamedTuple):
    """A call that generates a data set, and what it is given, by the names of its parameters."""

    name: str
    statement: ast.stmt
    given: dict[str, str]


@reads
def same_seed(source: Source) -> Iterator[Pattern]:
    """`train = build(900, seed=1)` and `val = build(150, seed=1)`: the first 150 of the same."""
    makers = {each.name: each for each in source.of(*Function.__args__)}
    for body in source.of(ast.ClassDef):
        for each in body.body:
            if isinstance(each, Function) and each.name == "__init__":
                makers[body.name] = each
    draws: dict[tuple[ast.AST, str], list[_Draw]] = {}
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            if isinstance(value, ast.Call) and dotted(value.func) in makers:
                draw = _Draw(name, statement, _given(makers[called(value)], value))
                draws.setdefault((scope, called(value)), []).append(draw)
    for (_, maker), every in draws.items():
        training = [each.given for each in every if is_training(each.name)]
        held_out = [each for each in every if is_held_out(each.name)]
        if training and held_out and _draws_by_seed(makers[maker]):
            for draw in held_out:
                if any(_is_same(one, draw.given) for one in training):
                    yield source.pattern("same seed", draw.statement, draw.name)


def _draws_by_seed(function: Function) -> bool:
    """Whether all that a function draws comes from its parameter `seed`."""
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    sources = [call for call in calls if called(call) in _GENERATORS]
    if not sources or any([dotted(each) for each in call.args] != ["seed"] for call in sources):
        return False
    seeded = {dotted(call.func) for call in sources}
    return not any(
        (_TORCH.match(name) and "torch.manual_seed" not in seeded and not _has_generator(call))
        or (_NUMPY.match(name) and name not in seeded and "np.random.seed" not in seeded)
        for call in calls
        if (name := dotted(call.func))
    )


def _has_generator(call: ast.Call) -> bool:
    return any(each.arg == "generator" for each in call.keywords)


def _given(function: Function, call: ast.Call) -> dict[str, str]:
    """Return the arguments of a call as they are written, those that are left out by default."""
    names = [each for each in parameters_of(function) if each != "self"]
    defaults = function.args.defaults
    ordinary = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    given = dict(zip(ordinary[len(ordinary) - len(defaults) :], defaults, strict=True))
    given |= dict(zip(names, call.args, strict=False))
    given |= {each.arg: each.value for each in call.keywords if each.arg}
    return {name: ast.unparse(value) for name, value in given.items()}


def _is_same(one: dict[str, str], other: dict[str, str]) -> bool:
    """Whether two calls have one seed, and differ in the number of samples at most."""
    if set(one) != set(other) or not one.get("seed", "").isdigit():
        return False
    return all(one[name] == other[name] or _COUNT.search(name) for name in one)


@reads
def shared_cache(source: Source) -> Iterator[Pattern]:
    """A dictionary that all data sets of a class share, with the row number alone as its key."""
    shared = {name for name, value, _ in source.assigned(source.tree) if _is_empty_table(value)}
    for function in source.of(ast.FunctionDef):
        body = source.parent(function)
        if function.name != "__getitem__" or not isinstance(body, ast.ClassDef):
            continue
        own = {dotted(target) for node in source.walk(body) if isinstance(node, ast.Assign)
               for target in node.targets}  # fmt: skip
        tables = (shared | _tables(body)) - own
        index = [*parameters_of(function), "", ""][1]
        kept = [
            node
            for node in source.walk(function)
            if isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Store)
            and dotted(node.value) in tables
            and dotted(resolved(source, function, node.slice)) == index
        ]
        calls = [call for call in source.of(ast.Call) if kept and called(call) == body.name]
        if len({_which_rows(call) for call in calls}) > 1:
            for node in kept:
                yield source.pattern("shared cache", node, dotted(node.value))


def _which_rows(call: ast.Call) -> tuple[str, ...]:
    """Return what a data set is given, without transforms: two that share rows may share them."""
    given = [(each.arg or "", each.value) for each in call.keywords]
    given += [("", each) for each in call.args]
    texts = [ast.unparse(value) for name, value in given if not _TRANSFORM.search(name)]
    return tuple(each for each in texts if not _TRANSFORM.search(each))


def _tables(body: ast.ClassDef) -> set[str]:
    """Return the empty dictionaries of a class, as its methods name them."""
    return {
        f"{owner}.{dotted(target)}"
        for node in body.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if _is_empty_table(node.value)
        for owner in ("self", "cls", body.name)
    }


def _is_empty_table(value: ast.expr) -> bool:
    return (isinstance(value, ast.Dict) and not value.keys) or (
        isinstance(value, ast.Call) and called(value) in ("dict", "OrderedDict") and not value.args
    )
