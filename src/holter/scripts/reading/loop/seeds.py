"""Generators that are seeded again for each batch, epoch or pass."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.loops import (
    EPOCH,
    LOOPS,
    optimizers,
    outer_loops,
    reached,
    trains,
)
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, of_self

_SEEDING = {"manual_seed", "seed", "default_rng", "RandomState", "Random", "manual_seed_all"}
_MODULES = {"torch", "np", "numpy", "random"}
_INDICES = {
    *("randint", "randperm", "permutation", "integers", "multinomial", "choice", "choices"),
    *("sample", "shuffle"),
}
_SEEDS = {"torch.manual_seed", "np.random.seed", "numpy.random.seed", "random.seed",
          "seed_everything", "set_seed", "torch.random.manual_seed", "fix_seed"}  # fmt: skip
_RANDOM = re.compile(
    r"^(randn?|randn_like|rand_like|randint|randperm|shuffle|permutation|sample|choice|DataLoader"
    r"|dropout|Dropout|normal_?|uniform_?|bernoulli|multinomial)$"
)


@reads
def repeated(source: Source) -> Iterator[Pattern]:
    """`g = torch.Generator().manual_seed(7)` and an index drawn by it, once for each batch."""
    steps = _steps(source)
    for call in source.of(ast.Call):
        if called(call) not in _SEEDING or not _is_constant(source, call):
            continue
        scope = source.scope(call)
        loop = _nearest_loop(source, call)
        if loop is not None:
            is_repeated = loop in steps and not _is_conditional(source, call, loop)
            around: ast.AST = loop
        else:
            is_repeated = isinstance(scope, Function) and _is_called_in(source, scope, steps)
            around = scope
        if is_repeated and (drawn := _drawn(source, call, around)):
            yield source.pattern("repeated seed", call, drawn)


def _is_constant(source: Source, call: ast.Call) -> bool:
    """Whether a seed is a number, or a name that the module gives one number."""
    if len(call.args) != 1 or call.keywords:
        return False
    (seed,) = call.args
    if isinstance(seed, ast.Name):
        values = [value for name, value, _ in source.assigned(source.tree) if name == seed.id]
        everywhere = sum(source.stores(scope, seed.id) for scope in source.scopes)
        if len(values) != 1 or everywhere != 1:
            return False
        seed = values[0]
    return isinstance(seed, ast.Constant) and type(seed.value) is int


def _steps(source: Source) -> set[ast.AST]:
    """Return the loops that make one training step a turn."""
    trained = {
        source.scope(call)
        for call in source.of(ast.Call)
        if called(call) == "backward" and _nearest_loop(source, call) is None
    }
    names = {getattr(scope, "name", "") for scope in trained} - {""}
    calls = [call for call in source.of(ast.Call) if called(call) in {"backward", *names}]
    return {loop for call in calls if (loop := _nearest_loop(source, call)) is not None}


def _nearest_loop(source: Source, node: ast.AST) -> ast.AST | None:
    """Return the innermost loop of the same function that repeats a node."""
    child = node
    for above in source.above(node):
        if isinstance(above, Function | ast.Lambda | ast.ClassDef):
            return None
        if isinstance(above, LOOPS) and child is not getattr(above, "iter", None):
            return above
        child = above
    return None


def _is_conditional(source: Source, node: ast.AST, loop: ast.AST) -> bool:
    """Whether a loop does something in some of its turns only."""
    for above in source.above(node):
        if above is loop:
            return False
        if isinstance(above, ast.If | ast.IfExp | ast.Try | ast.Match):
            return True
    return False


def _is_called_in(source: Source, function: Function, steps: set[ast.AST]) -> bool:
    """Whether each call of a function, and there is one, is made in every training step."""
    if function.decorator_list or any(
        isinstance(node, ast.Yield | ast.YieldFrom) for node in source.walk(function)
    ):
        return False
    calls = [call for call in source.of(ast.Call) if called(call) == function.name]
    return bool(calls) and all(
        (loop := _nearest_loop(source, call)) in steps
        and loop is not None
        and not _is_conditional(source, call, loop)
        for call in calls
    )


def _drawn(source: Source, seeding: ast.Call, around: ast.AST) -> str:
    """Return the call that draws an index after the seed, by the generator that was seeded."""
    statement = next(
        (above for above in source.above(seeding) if isinstance(above, ast.stmt)), seeding
    )
    names = set()
    if isinstance(statement, ast.Assign):
        names = {each.id for each in statement.targets if isinstance(each, ast.Name)}
    elif isinstance(seeding.func, ast.Attribute) and isinstance(seeding.func.value, ast.Name):
        names = {seeding.func.value.id} - _MODULES
    home = dotted(seeding.func).partition(".")[0]
    for node in source.walk(around):
        if not isinstance(node, ast.Call) or called(node) not in _INDICES:
            continue
        used = {each.id for each in source.walk(node) if isinstance(each, ast.Name)}
        is_plain = not any(each.arg == "generator" for each in node.keywords)
        is_of_module = home in _MODULES and dotted(node.func).partition(".")[0] == home
        is_after = node.lineno >= seeding.lineno
        is_inside = any(each is seeding for each in source.walk(node))
        if is_inside or (is_after and (used & names if names else is_plain and is_of_module)):
            return ast.unparse(node)
    return ""


@reads
def reseeded(source: Source) -> Iterator[Pattern]:
    """`torch.manual_seed(0)` in every epoch: each has the same order, noise and dropout."""
    if any(re.search(r"rng_state|fork_rng|preserve_rng|getstate|set_state", each.attr)
           for each in source.of(ast.Attribute)):  # fmt: skip
        return
    for call in source.of(ast.Call):
        if dotted(call.func) not in _SEEDS or len(call.args) != 1:
            continue
        if not _is_fixed(source, call.args[0]) or any(
            isinstance(each, ast.If) for each in source.above(call)
        ):
            continue
        for loop in outer_loops(source, call):
            if not _is_epochs(loop) or not trains(source, loop):
                continue
            inside = reached(source, loop)
            builds = any(each in inside for each in optimizers(source))
            names = [called(each) for each in inside if isinstance(each, ast.Call)]
            everywhere = [called(each) for each in source.of(ast.Call)]
            is_random = any(map(_RANDOM.match, names)) or "DataLoader" in everywhere
            if not builds and is_random and _is_same_kind(call, inside):
                yield source.pattern("seed in every epoch", call, ast.unparse(call))
                break


def _is_epochs(loop: ast.AST) -> bool:
    if isinstance(loop, ast.While):
        return bool(EPOCH.search(ast.unparse(loop.test)))
    return isinstance(loop, ast.For) and bool(
        EPOCH.search(ast.unparse(loop.target)) or EPOCH.search(ast.unparse(loop.iter))
    )


def _is_fixed(source: Source, seed: ast.expr) -> bool:
    """Whether a seed is the same in every turn: a number or a setting."""
    if isinstance(seed, ast.Constant):
        return type(seed.value) is int
    name = dotted(seed)
    last = name.rpartition(".")[2]
    if name.isupper() or re.fullmatch(r"(args|cfg|config|opt|conf)\.\w*seed\w*", name):
        return True
    values = source.named(last)
    return bool(values) and all(isinstance(v, ast.Constant) for v in values) and "." not in name


def _is_same_kind(call: ast.Call, inside: list[ast.AST]) -> bool:
    """Whether the generator that is seeded is one that the training draws from."""
    home = dotted(call.func).partition(".")[0]
    if home in ("torch", "seed_everything", "set_seed", "fix_seed"):
        return True
    return any(isinstance(each, ast.Call) and dotted(each.func).startswith(f"{home}.")
               and _RANDOM.match(called(each)) for each in inside)  # fmt: skip


@reads
def same_batches(source: Source) -> Iterator[Pattern]:
    """`rng = random.Random(self.seed)` in `__iter__` of a sampler: every epoch is the same."""
    for body in source.of(ast.ClassDef):
        if not any(dotted(base).endswith("Sampler") for base in body.bases):
            continue
        if re.search(r"val|test|eval|determin|distributed|fixed", body.name, re.I):
            continue
        for function in body.body:
            if not isinstance(function, ast.FunctionDef) or function.name != "__iter__":
                continue
            for call in source.walk(function):
                if not isinstance(call, ast.Call) or len(call.args) != 1:
                    continue
                if called(call) not in ("Random", "default_rng", "RandomState", "manual_seed"):
                    continue
                seed = call.args[0]
                is_constant = isinstance(seed, ast.Constant) and type(seed.value) is int
                if is_constant or (of_self(seed) and not _is_advanced(source, of_self(seed))):
                    yield source.pattern("same batches in every epoch", call, body.name)


def _is_advanced(source: Source, name: str) -> bool:
    """Whether anything but the constructor gives an attribute another value."""
    if "epoch" in name:
        return True
    for node in source.of(ast.Attribute):
        is_made = getattr(source.scope(node), "name", "") == "__init__"
        if node.attr == name and isinstance(node.ctx, ast.Store) and not is_made:
            return True
    return any(called(call) == "set_epoch" for call in source.of(ast.Call))
