"""Thresholds that do not fit the scale of what is compared with them."""

import ast
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import made, resolved, tensor_of
from holter.scripts.reading.source.metric_names import makers
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_SIGMOID = {"sigmoid", "expit", "sigmoid_"}
_BINARY_LOGITS = {"BCEWithLogitsLoss", "binary_cross_entropy_with_logits"}
_OTHER_LOSSES = {"CrossEntropyLoss", "cross_entropy", "NLLLoss", "nll_loss", "kl_div", "KLDivLoss"}
_LEAST = 0.3  # a threshold of probabilities, not a small number that stands for 0
_CASTS = {"squeeze", "cpu", "detach", "numpy", "float", "view", "flatten", "reshape"}
_MOVES = {"to", "cuda", "cpu", "compile"}


@reads
def thresholded(source: Source) -> Iterator[Pattern]:
    """`sigmoid(x) > 0`, `logits > 0.5`, `softmax(x) > 0.5` of labels, sigmoids of probabilities."""
    bounds = [(node, bound) for node in source.of(ast.Compare)
              if (bound := _bound(node)) is not None and not _is_test(source, node)]  # fmt: skip
    if not bounds:
        return
    names = {called(call) for call in source.of(ast.Call)}
    is_binary = bool(names & _BINARY_LOGITS) and not names & _OTHER_LOSSES
    probabilities = _models_of_probabilities(source)
    losses = _losses_of_logits(source) if names & _BINARY_LOGITS else []
    models = _models_of_logits(source, losses)
    for node, bound in bounds:
        scope = source.scope(node)
        scores = _scores(source, scope, node.left)
        is_sigmoid = isinstance(scores, ast.Call) and called(scores) in _SIGMOID
        if bound == 0 and (is_sigmoid or _is_output(source, scope, scores, probabilities)):
            yield source.pattern("threshold of zero", node, ast.unparse(node.left))
        elif bound >= _LEAST and is_binary and called(scores) == "softmax":
            yield source.pattern("softmax threshold", node, ast.unparse(scores))
        elif bound == 0.5 and _is_logits(source, scope, node.left, losses, models):
            yield source.pattern("logits threshold", node, ast.unparse(node.left))
        elif is_sigmoid and isinstance(scores, ast.Call):
            inner = tensor_of(scores)
            if inner is not None:
                inner = _scores(source, scope, inner)
                if _is_output(source, scope, inner, probabilities):
                    yield source.pattern("sigmoid twice", node, ast.unparse(scores))


def _bound(node: ast.Compare) -> float | None:
    """Return the number that something is compared with: `x > 0.5`."""
    bound = node.comparators[0]
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Gt | ast.GtE):
        return None
    if not isinstance(bound, ast.Constant) or type(bound.value) not in (int, float):
        return None
    return float(bound.value)  # type: ignore[arg-type]


def _is_test(source: Source, node: ast.AST) -> bool:
    """Whether a comparison checks values rather than choosing classes by them."""
    statement = next((each for each in source.above(node) if isinstance(each, ast.stmt)), None)
    return isinstance(statement, ast.Assert | ast.If | ast.While)


def _scores(source: Source, scope: ast.AST, value: ast.expr) -> ast.expr:
    """Return what a name was given once, without casts around it."""
    value = resolved(source, scope, value)
    while (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in _CASTS
    ):
        value = value.func.value
    return value


def _models_of_probabilities(source: Source) -> set[str]:
    """Return names that only ever hold a module whose forward pass ends in a sigmoid."""
    classes = {
        name for name, body in source.module_classes.items() if _returns_sigmoid(source, body)
    }
    # A name may stand for another model in a function that is given one.
    if {called(call) for call in source.of(ast.Call)} & set(source.module_classes) - classes:
        return set()
    kinds: dict[str, set[bool]] = {}
    for scope in source.scopes:
        for name, value, _ in source.assigned(scope):
            model = value
            while isinstance(model, ast.Call) and called(model) in _MOVES:
                inner = tensor_of(model)
                if inner is None:
                    break
                model = inner
            is_one = called(model) in classes or _ends_in_sigmoid(model)
            if not isinstance(model, ast.Name) or model.id != name:  # not `net = net.to(device)`
                kinds.setdefault(name, set()).add(is_one)
    return {name for name, every in kinds.items() if every == {True}}


def _returns_sigmoid(source: Source, body: ast.ClassDef) -> bool:
    """Whether all that a module returns are sigmoids, or outputs of a part that ends in one."""
    parts = {
        dotted(node.targets[0])
        for node in source.walk(body)
        if isinstance(node, ast.Assign)
        and (_ends_in_sigmoid(node.value) or called(node.value) == "Sigmoid")
    }
    values = [
        _scores(source, function, node.value)
        for function in body.body
        if isinstance(function, Function) and function.name == "forward"
        for node in source.walk(function)
        if isinstance(node, ast.Return) and node.value is not None
    ]
    return bool(values) and all(
        isinstance(each, ast.Call) and (called(each) in _SIGMOID or dotted(each.func) in parts)
        for each in values
    )


def _ends_in_sigmoid(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and called(value) == "Sequential"
        and bool(value.args)
        and called(value.args[-1]) == "Sigmoid"
    )


def _is_output(source: Source, scope: ast.AST, value: ast.expr, models: set[str]) -> bool:
    """Whether an expression is what these models return, also as an argument of the function."""
    if isinstance(value, ast.Call):
        return dotted(value.func) in models
    if not isinstance(value, ast.Name) or not isinstance(scope, Function):
        return False
    places = [each.arg for each in scope.args.args]
    if value.id not in places or source.stores(scope, value.id) != 1:
        return False
    place = places.index(value.id)
    calls = [call for call in source.of(ast.Call) if called(call) == scope.name]
    return bool(calls) and all(
        len(call.args) > place
        and _is_of_models(source, source.scope(call), call.args[place], models)
        for call in calls
    )


def _is_of_models(source: Source, scope: ast.AST, value: ast.expr, models: set[str]) -> bool:
    """Whether an expression, or all that a name is given, is an output of these models."""
    values = made(source, scope, value.id) if isinstance(value, ast.Name) else [value]
    calls = [_scores(source, scope, each) for each in values]
    return bool(calls) and all(
        isinstance(each, ast.Call) and dotted(each.func) in models for each in calls
    )


def _losses_of_logits(source: Source) -> list[ast.Call]:
    """Return the calls of binary losses that take logits: `criterion(model(x), y)`."""
    return [
        call
        for call in source.of(ast.Call)
        if call.args
        and {called(call), *(called(each) for each in makers(source, call))} & _BINARY_LOGITS
    ]


def _models_of_logits(source: Source, losses: list[ast.Call]) -> set[str]:
    """Return the models whose outputs these losses take."""
    if not losses or any("igmoid" in ast.dump(body) for body in source.module_classes.values()):
        return set()  # a module may return probabilities when it is evaluated
    found = set()
    for call in losses:
        scope, given = source.scope(call), call.args[0]
        values = made(source, scope, given.id) if isinstance(given, ast.Name) else [given]
        for value in (_scores(source, scope, each) for each in values):
            name = dotted(value.func) if isinstance(value, ast.Call) else ""
            if "." not in name or name.startswith("self."):  # not `x.sum(1)`, `torch.cat(...)`
                found.add(name)
    return found - {""}


def _is_logits(
    source: Source, scope: ast.AST, value: ast.expr, losses: list[ast.Call], models: set[str]
) -> bool:
    """Whether an expression is what a loss of logits is computed of, or comes from its model."""
    name = value.id if isinstance(value, ast.Name) else ""
    is_given = any(dotted(c.args[0]) == name and source.scope(c) is scope for c in losses)
    if name and is_given and source.stores(scope, name) == 1:
        return True
    return _is_of_models(source, scope, value, models)
