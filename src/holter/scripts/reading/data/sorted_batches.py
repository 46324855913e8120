"""Predictions that are computed in another order than that of the data, and never put back."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import HOMES, tensor_of
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.provenance import (
    DATA,
    PREDICTED,
    frames,
    is_model_call,
    provenance,
)
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    parameters_of,
)

_PERMUTING = {"argsort", "randperm", "permutation"}
_ADDING = {"append", "extend"}
_JOINING = {"cat", "concatenate", "concat", "vstack", "hstack", "stack", "array", "asarray"}
_PLAIN = {
    "numpy",
    "cpu",
    "detach",
    "tolist",
    "argmax",
    "softmax",
    "sigmoid",
    "float",
    "round",
    "squeeze",
    "flatten",
}
_DEEPEST = 6
_LOSS = re.compile(r"loss|cross_entropy|criterion", re.I)
_RETURNED = "return"
_Turns = ast.For | ast.ListComp | ast.GeneratorExp


@reads
def sorted_predictions(source: Source) -> Iterator[Pattern]:
    """`order = sorted(range(n), key=...)`, a model called in that order, and its outputs alone."""
    for scope in source.scopes:
        for name, statement in _orders(source, scope):
            turns = _turns(source, scope, name, statement)
            if turns is None or any(called(node) == "backward" for node in source.walk(turns)):
                continue
            joined = _gathered(source, turns, scope)
            if joined == _RETURNED or (joined and _is_given_away(source, scope, joined, turns)):
                yield source.pattern("sorted predictions", statement, name)


def _orders(source: Source, scope: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the names of other orders of the data, and of data in another order."""
    for name, value, statement in source.assigned(scope):
        again = name in parameters_of(scope)  # `rows = sorted(rows, key=len)`
        if source.stores(scope, name) == 1 + again and _is_order(value):
            yield name, statement
    for each in source.of(ast.Assign):
        target = each.targets[0]
        if source.scope(each) is scope and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            place = target.elts[1]
            if called(each.value) == "sort" and isinstance(place, ast.Name):
                yield place.id, each


def _is_order(value: ast.expr) -> bool:
    while (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and called(value) in ("tolist", "numpy", "cpu")
    ):
        value = value.func.value
    if isinstance(value, ast.Subscript) and called(value.value) == "sort":
        return ast.unparse(value.slice) == "1"
    if isinstance(value, ast.Attribute) and value.attr == "indices":
        return called(value.value) == "sort"
    if not isinstance(value, ast.Call):
        return False
    if called(value) == "sorted":
        return bool(value.args) and (
            called(value.args[0]) == "range"
            or (isinstance(value.args[0], ast.Name) and bool(value.keywords))
        )
    return called(value) in _PERMUTING


def _turns(source: Source, scope: ast.AST, name: str, made: ast.stmt) -> _Turns | None:
    """Return the only loop or comprehension that uses an order, if a model is called in it."""
    found: set[_Turns] = set()
    for node in source.of(ast.Name):
        if node.id != name or source.scope(node) is not scope or isinstance(node.ctx, ast.Store):
            continue
        if called(source.parent(node) or node) == "len" or made in source.above(node):
            continue
        around = [each for each in source.above(node)
                  if isinstance(each, _Turns) and source.scope(each) is scope]  # fmt: skip
        with_model = [each for each in around if _calls_model(source, each)]
        if not with_model:
            return None
        found.add(with_model[-1])
    return found.pop() if len(found) == 1 else None


def _calls_model(source: Source, node: ast.AST) -> bool:
    return any(provenance(source, call, way) == PREDICTED
               for call in source.walk(node) if isinstance(call, ast.Call)
               for way in frames(source, source.scope(call))[:1])  # fmt: skip


def _gathered(source: Source, turns: _Turns, scope: ast.AST) -> str:
    """Return the name of the list that gets outputs of a model, if nothing else is kept."""
    if not isinstance(turns, ast.For):
        way = frames(source, scope)[0]
        if not isinstance(turns, ast.ListComp) or not _is_output(source, turns.elt, way):
            return ""
        above = source.parent(turns)
        while isinstance(above, ast.Call) and called(above) in _JOINING:
            above = source.parent(above)
        if isinstance(above, ast.Return):
            return _RETURNED
        if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
            return above.targets[0].id
        return ""
    kept: dict[str, list[ast.expr]] = {}
    for node in source.walk(turns):
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if isinstance(node, ast.AugAssign) or any(
                isinstance(each, ast.Subscript | ast.Attribute) for each in targets
            ):
                return ""  # put where it belongs, or added up
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr in _ADDING:
                kept.setdefault(dotted(node.func.value), []).append(node.args[0])
            elif node.func.attr in ("update", "add", "write", "writerow", "put", "index_copy_"):
                return ""
    way = frames(source, scope)[0]
    if len(kept) != 1:
        return ""
    name, values = kept.popitem()
    return name if all(_is_output(source, each, way) for each in values) else ""


def _is_output(source: Source, node: ast.expr, way: Frame, depth: int = 0) -> bool:
    """Whether an expression is what a model returned, and not how good that is."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if called(node) not in _PLAIN or is_model_call(source, node, way):
            break
        of_module = dotted(node.func.value) in HOMES
        node = node.args[0] if of_module and node.args else node.func.value
    if isinstance(node, ast.Name) and depth < _DEEPEST:
        found = list(origins(source, node, way))
        return bool(found) and all(
            _is_output(source, each.node, each.frame, depth + 1) for each in found
        )
    return isinstance(node, ast.Call) and is_model_call(source, node, way)


def _is_given_away(source: Source, scope: ast.AST, name: str, turns: _Turns) -> bool:
    """Whether joined outputs are returned alone, or compared with data in their own order."""
    way = frames(source, scope)[0]
    later = [each for each in source.assigned(scope) if each[2].lineno > turns.lineno]
    names = {name} | {other for other, value, _ in later if _plain_root(value) == name}
    if isinstance(scope, Function):
        returns = [node.value for node in source.of(ast.Return) if source.scope(node) is scope]
        if any(each is not None and _plain_root(each) in names for each in returns):
            return len(returns) == 1
    for node in source.of(ast.Compare):
        if source.scope(node) is scope and isinstance(node.ops[0], ast.Eq):
            sides = (node.left, node.comparators[0])
            roots = [_plain_root(each) for each in sides]
            for one, other in ((0, 1), (1, 0)):
                if roots[one] in names and not isinstance(sides[other], ast.Constant):
                    return provenance(source, sides[other], way) == DATA
    return False


def _plain_root(node: ast.expr) -> str:
    """Return the name whose rows an expression has: `torch.cat(chunks).argmax(1)`."""
    while isinstance(node, ast.Call):
        if called(node) in _JOINING and node.args:
            node = node.args[0]
        elif called(node) in _PLAIN and isinstance(node.func, ast.Attribute):
            of_module = dotted(node.func.value) in HOMES
            node = node.args[0] if of_module and node.args else node.func.value
        else:
            return ""
    return node.id if isinstance(node, ast.Name) else ""


@reads
def sorted_forward(source: Source) -> Iterator[Pattern]:
    """A `forward` that sorts its rows by length for packing, and returns them in that order."""
    for body in source.module_classes.values():
        for function in body.body:
            if isinstance(function, Function) and function.name == "forward":
                yield from _unrestored(source, function)


def _unrestored(source: Source, function: Function) -> Iterator[Pattern]:
    code = source.code(function)
    if "pack_padded_sequence" not in code or _LOSS.search(code):
        return
    given = set(parameters_of(function))
    for name, statement in _orders(source, function):
        loads = [node for node in source.walk(function) if isinstance(node, ast.Name)
                 and node.id == name and isinstance(node.ctx, ast.Load)]  # fmt: skip
        indexed = [_indexed(source, node) for node in loads]
        if not loads or any(each is None for each in indexed):
            continue
        of_inputs = all(_is_input(source, each, given, Frame(function)) for each in indexed if each)
        returned = {node.id for each in source.walk(function) if isinstance(each, ast.Return)
                    for node in ast.walk(each) if isinstance(node, ast.Name)}  # fmt: skip
        own = {dotted(each) for each in indexed if each is not None}
        if of_inputs and not returned & (own | {name}):
            yield source.pattern("sorted forward", statement, name)


def _indexed(source: Source, node: ast.Name) -> ast.expr | None:
    """Return what a name is the index of: `x` of `x[order]`, and of `x.index_select(0, order)`."""
    above = source.parent(node)
    if isinstance(above, ast.Subscript) and above.slice is node and isinstance(above.ctx, ast.Load):
        return above.value
    if isinstance(above, ast.Call) and called(above) == "index_select":
        return tensor_of(above)
    return None


def _is_input(source: Source, node: ast.expr, given: set[str], frame: Frame) -> bool:
    """Whether an expression is an argument of the function, or an embedding of it."""
    if isinstance(node, ast.Call) and dotted(node.func).startswith("self."):
        return bool(node.args) and _is_input(source, node.args[0], given, frame)
    if not isinstance(node, ast.Name):
        return False
    if node.id in given:
        return True
    found = [each.node for each in origins(source, node, frame)]
    return len(found) == 1 and isinstance(found[0], ast.Call) and _is_input(
        source, found[0], given, frame
    )  # fmt: skip
