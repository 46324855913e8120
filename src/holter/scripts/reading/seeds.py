"""Generators that are seeded again for each batch."""

import ast
from collections.abc import Iterator

from holter.scripts.reading.source import Function, Pattern, Source, called, dotted

_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_SEEDING = {"manual_seed", "seed", "default_rng", "RandomState", "Random", "manual_seed_all"}
_MODULES = {"torch", "np", "numpy", "random"}
_INDICES = {
    *("randint", "randperm", "permutation", "integers", "multinomial", "choice", "choices"),
    *("sample", "shuffle"),
}


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
        if isinstance(above, _LOOPS) and child is not getattr(above, "iter", None):
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
