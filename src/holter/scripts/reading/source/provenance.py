"""Provenance: whether a value is what a model returned, or data that no model has touched."""

import ast
import re
from collections.abc import Iterable, Iterator

from holter.scripts.reading.source.origins import Frame, Origin, origins, returned
from holter.scripts.reading.source.tree import (
    Function,
    Source,
    called,
    dotted,
    parameters_of,
    root_name,
)

PREDICTED, DATA, UNKNOWN = "predicted", "data", ""
_PREDICTING = {"predict", "predict_proba", "decision_function"}
_TRAINED = {"Parameter", "requires_grad_"}
_MODULES = {"np", "numpy", "torch", "F", "nn", "math", "random", "pd", "scipy", "metrics", "stats"}
_ADDING = {"append", "extend", "insert"}
_FILLING = {"copy_", "fill_", "put", "update", "add_"}
_LOADER = re.compile(r"loader|batches|(^|_)dl($|_)", re.I)
_DEEPEST = 12  # steps from a value to where it comes from
_WAYS = 8  # calls of a function that are followed


def frames(source: Source, scope: ast.AST, depth: int = 2) -> list[Frame]:
    """Return the ways into a function: each call of it in the file, with the way to that call."""
    if not isinstance(scope, Function):
        return [Frame(scope)]
    calls = [call for call in source.of(ast.Call)
             if called(call) == scope.name and source.scope(call) is not scope]  # fmt: skip
    if not calls or depth == 0 or len(calls) > _WAYS:
        return [Frame(scope)]
    return [Frame(scope, call, above) for call in calls
            for above in frames(source, source.scope(call), depth - 1)]  # fmt: skip


def provenance(source: Source, node: ast.expr, frame: Frame, depth: int = 0) -> str:
    """Return PREDICTED if a model made a value, DATA if none did, UNKNOWN if it is not known."""
    if depth > _DEEPEST:
        return UNKNOWN
    if isinstance(node, ast.Call):
        return _of_call(source, node, frame, depth)
    if isinstance(node, ast.Name):
        return _of_name(source, node, frame, depth)
    if isinstance(node, ast.Constant):
        return DATA
    if isinstance(node, ast.Attribute):
        if dotted(node).startswith("self."):
            return UNKNOWN
        return provenance(source, node.value, frame, depth + 1)
    if isinstance(node, ast.Subscript):
        # An entry of a dictionary may be anything.
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return UNKNOWN
        return provenance(source, node.value, frame, depth + 1)
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return _of_comprehension(source, node, frame, depth)
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.IfExp | ast.Tuple | ast.List):
        parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        return _joined(provenance(source, each, frame, depth + 1) for each in parts)
    return UNKNOWN


def _joined(kinds: Iterable[str]) -> str:
    """Return what a value is that several others make."""
    every = set(kinds)
    if PREDICTED in every:
        return PREDICTED
    return UNKNOWN if UNKNOWN in every else DATA


def is_model(source: Source, name: str) -> bool:
    """Whether a name stands for a model: something of it is trained or evaluated."""
    return bool(name) and name.rpartition(".")[2] in source.models


def _of_call(source: Source, call: ast.Call, frame: Frame, depth: int) -> str:
    if is_model_call(source, call, frame):
        return PREDICTED
    if called(call) in _TRAINED or any(each.arg == "requires_grad" for each in call.keywords):
        return UNKNOWN
    origin = returned(source, call, frame)
    if origin is not None:
        return provenance(source, origin.node, origin.frame, depth + 1)
    given = [*call.args, *(each.value for each in call.keywords)]
    if any(is_model(source, dotted(each)) for each in given) or called(call) in source.defined:
        return UNKNOWN  # of a function with several returns, or of another file
    if isinstance(call.func, ast.Attribute):
        home = call.func.value
        if is_model(source, dotted(home)):
            return PREDICTED  # model.score(users, items)
        if dotted(home).partition(".")[0] not in _MODULES and not _is_object(source, home, frame):
            given.append(home)
    given = [each for each in given if not isinstance(each, ast.Starred)]
    kind = _joined(provenance(source, each, frame, depth + 1) for each in given)
    return DATA if kind == UNKNOWN and _LOADER.search(called(call)) else kind


def is_model_call(source: Source, call: ast.Call, frame: Frame) -> bool:
    """Whether a call is of a model, or asks one for predictions."""
    return _is_of_model(source, call.func, frame) or called(call) in _PREDICTING


def _is_of_model(source: Source, node: ast.expr, frame: Frame) -> bool:
    """Whether an expression is a model, also as the argument of a function."""
    if is_model(source, dotted(node)):
        return True
    if not isinstance(node, ast.Name) or node.id not in parameters_of(frame.scope):
        return False
    given = [each.node for each in origins(source, node, frame)]
    return bool(given) and all(is_model(source, dotted(each)) for each in given)


def _is_object(source: Source, home: ast.expr, frame: Frame) -> bool:
    """Whether a method belongs to something that is no array, such as a scaler."""
    if not isinstance(home, ast.Name):
        return False
    values = [each.node for each in origins(source, home, frame)]
    return any(called(node)[:1].isupper() for each in values for node in ast.walk(each))


def _of_name(source: Source, name: ast.Name, frame: Frame, depth: int) -> str:
    if name.id in source.trained:
        return UNKNOWN
    filled = [provenance(source, each, frame, depth + 1)
              for each in gathered(source, name.id, frame.scope)]  # fmt: skip
    loop = loop_of(source, name)
    if loop is not None and not filled:
        if _LOADER.search(ast.unparse(loop)) and called(loop) != "zip":
            return DATA
        return provenance(source, loop, frame, depth + 1) if _is_plain(loop) else UNKNOWN
    found = [_of_origin(source, name, each, depth) for each in origins(source, name, frame)]
    if filled or found:
        return _joined((*filled, *found))
    if name.id in parameters_of(frame.scope):
        return UNKNOWN
    return _of_unpacked(source, name, frame, depth)


def _of_origin(source: Source, name: ast.Name, origin: Origin, depth: int) -> str:
    if isinstance(origin.node, ast.Name) and origin.node is name:
        return UNKNOWN
    return provenance(source, origin.node, origin.frame, depth + 1)


def _of_unpacked(source: Source, name: ast.Name, frame: Frame, depth: int) -> str:
    """Return what a part of a tuple is that a call gives: `x, y = split(rows)`."""
    for scope in (frame.scope, source.tree):
        bound = [each for each in source.bindings(scope, name.id) if isinstance(each, ast.Assign)]
        if bound:
            calls = [each.value for each in bound if isinstance(each.value, ast.Call)]
            if len(calls) < len(bound):
                return UNKNOWN
            kinds = {_of_call(source, each, Frame(scope), depth + 1) for each in calls}
            return DATA if kinds == {DATA} else UNKNOWN
    return DATA if name.id in source.imported else UNKNOWN


def _of_comprehension(
    source: Source, node: ast.ListComp | ast.GeneratorExp, frame: Frame, depth: int
) -> str:
    inside = [each for each in ast.walk(node.elt) if isinstance(each, ast.Call)]
    if any(is_model(source, dotted(each.func)) for each in inside):
        return PREDICTED
    if any(called(each) in source.defined for each in inside):
        return UNKNOWN
    return _joined(provenance(source, each.iter, frame, depth + 1) for each in node.generators)


def gathered(source: Source, name: str, scope: ast.AST) -> Iterator[ast.expr]:
    """Yield what a scope puts into an array or a list: `p.append(x)`, `p[i] = x`, `p += x`."""
    for call in source.of(ast.Call):
        if (called(call) in _ADDING | _FILLING and call.args and source.scope(call) is scope
                and isinstance(call.func, ast.Attribute)
                and root_name(call.func.value) == name):  # fmt: skip
            yield call.args[-1]
    for assign in source.of(ast.Assign):
        if source.scope(assign) is scope and any(
            isinstance(each, ast.Subscript) and root_name(each) == name for each in assign.targets
        ):
            yield assign.value
    for more in source.of(ast.AugAssign):
        if source.scope(more) is scope and dotted(more.target) == name:
            yield more.value


def loop_of(source: Source, name: ast.Name) -> ast.expr | None:
    """Return what the loop goes through whose variable a name is."""
    for above in source.above(name):
        if isinstance(above, Function):
            return None
        if isinstance(above, ast.For) and name.id in _names(above.target):
            again = any(isinstance(each, ast.Name) and each.id == name.id
                        and isinstance(each.ctx, ast.Store)
                        for part in above.body for each in ast.walk(part))  # fmt: skip
            return None if again else above.iter
        if isinstance(above, ast.ListComp | ast.GeneratorExp):
            for each in above.generators:
                if name.id in _names(each.target):
                    return each.iter
    return None


def _names(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _is_plain(iterated: ast.expr) -> bool:
    """Whether a loop goes through one thing, or through it with numbers: not `zip(p, y)`."""
    if isinstance(iterated, ast.Call):
        return called(iterated) in ("enumerate", "tqdm") and bool(iterated.args)
    return isinstance(iterated, ast.Name | ast.Attribute)


def is_part_of_model(source: Source, name: str) -> bool:
    """Whether a module belongs to a model, or is the model: none that prepares one sample."""
    for call in source.of(ast.Call):
        if called(call) != name:
            continue
        scope = source.scope(call)
        around = source.parent(scope)
        if isinstance(around, ast.ClassDef) and around.name in source.module_classes:
            return True
        above = source.parent(call)
        while isinstance(above, ast.Call | ast.Attribute):
            above = source.parent(above)
        if isinstance(above, ast.Assign):
            kept = {dotted(each).rpartition(".")[2] for each in above.targets}
            if kept & source.models:
                return True
    return False
