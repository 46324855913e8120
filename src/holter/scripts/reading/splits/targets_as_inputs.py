"""Inputs that hold the target: its column in a list, or its classes beside the features."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_TARGETS = re.compile(r"^(target|label|outcome|y|response)(_?(col|column|name|field))?$", re.I)
_INPUTS = re.compile(r"num|feat|cat|input|predict|covar|continuous", re.I)
_OTHERS = re.compile(r"target|label|all|raw|keep|read|use_?cols|category_names", re.I)
_LEAVES_OUT = re.compile(r"\.remove\(|drop\(|difference\(|!= ?(cfg|args|self|target|TARGET|label)")
_JOINS = {"cat", "concat", "concatenate", "hstack", "column_stack"}
_CLASSES = {"cross_entropy", "nll_loss", "binary_cross_entropy_with_logits", "mse_loss"}


@reads
def listed_target(source: Source) -> Iterator[Pattern]:
    """`{"target": "default", "numeric": ["income", "default"]}`."""
    if _LEAVES_OUT.search(source.code(source.tree)):
        return
    pairs = list(_settings(source))
    targets = {
        value.value
        for name, value in pairs
        if _TARGETS.match(name) and isinstance(value, ast.Constant)
    }
    for name, value in pairs:
        if not isinstance(value, ast.List | ast.Tuple) or not _INPUTS.search(name):
            continue
        listed = {each.value for each in value.elts if isinstance(each, ast.Constant)}
        both = sorted(str(each) for each in listed & targets if isinstance(each, str))
        if both and len(listed) > 1 and not _OTHERS.search(name):
            yield source.pattern("target among inputs", value, both[0])


def _settings(source: Source) -> Iterator[tuple[str, ast.expr]]:
    """Yield names with their values: of dictionaries, assignments, fields and defaults."""
    for table in source.of(ast.Dict):
        for key, value in zip(table.keys, table.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    for node in source.of(ast.Assign):
        for target in node.targets:
            yield dotted(target).rpartition(".")[2], node.value
    for field in source.of(ast.AnnAssign):
        if field.value is not None:
            given = field.value
            if isinstance(given, ast.Call) and given.keywords:  # default_factory=lambda: [...]
                given = given.keywords[0].value
            yield dotted(field.target), given.body if isinstance(given, ast.Lambda) else given
    for call in source.of(ast.Call):
        if called(call) in ("Config", "SimpleNamespace", "Namespace", "dict"):
            yield from ((each.arg, each.value) for each in call.keywords if each.arg)


@reads
def classes_beside_features(source: Source) -> Iterator[Pattern]:
    """`x = torch.cat([x, F.one_hot(y)], 1)` of the features that `y` is predicted from."""
    losses = [call for call in source.of(ast.Call)
              if called(call) in _CLASSES and len(call.args) > 1]  # fmt: skip
    for node in source.of(ast.Assign):
        scope, name = source.scope(node), dotted(node.targets[0])
        if called(node.value) not in _JOINS or not isinstance(node.value, ast.Call):
            continue
        parts = node.value.args[0] if node.value.args else node.value
        if not isinstance(parts, ast.List | ast.Tuple) or not name:
            continue
        if not any(dotted(each) == name for each in parts.elts):
            continue
        for each in parts.elts:
            target = _classes_of(each)
            if not target:
                continue
            for loss in losses:
                of = loss.args[1]
                whole = of.value if isinstance(of, ast.Subscript) else of
                if dotted(whole) != target or source.scope(loss) is not scope:
                    continue
                if _is_output(source, scope, loss.args[0], name):
                    yield source.pattern("classes beside features", node, target)
                    return


def _classes_of(node: ast.expr) -> str:
    """Return the labels that `F.one_hot(y, 7).float()`, `np.eye(7)[y]` or `y[:, None]` hold."""
    while isinstance(node, ast.Call) and called(node) in ("float", "to", "astype", "unsqueeze"):
        node = node.func.value if isinstance(node.func, ast.Attribute) else ast.Name("")
    if isinstance(node, ast.Call) and called(node) == "one_hot" and node.args:
        return dotted(node.args[0])
    if isinstance(node, ast.Subscript):
        if called(node.value) == "eye":
            return dotted(node.slice)
        if ast.unparse(node.slice) in (":, None", "(:, None)"):
            return dotted(node.value)
    return ""


def _is_output(source: Source, scope: ast.AST, node: ast.expr, features: str) -> bool:
    """Whether a loss takes what a model makes of the features: `model(x, adj)[train]`."""
    if isinstance(node, ast.Subscript):
        node = node.value
    values = [node]
    if isinstance(node, ast.Name):
        values = [value for name, value, _ in source.assigned(scope) if name == node.id]
    return any(
        isinstance(each, ast.Call)
        and dotted(each.func).rpartition(".")[2] in source.models
        and any(features in {dotted(part) for part in ast.walk(arg)} for arg in each.args)
        for each in values
    )
