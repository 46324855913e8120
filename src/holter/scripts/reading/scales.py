"""Scales that are undone in another order, by another scaler, or made again for each part."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called, dotted
from holter.scripts.reading.splits import is_held_out, is_training
from holter.scripts.reading.values import resolved

_SCALER = re.compile(r"(Scaler|Encoder|Binarizer|Imputer|Vectorizer|PCA|Discretizer)$")
_PREDICTED = re.compile(
    r"(^|_)(preds?|predictions?|predicted|y_?hat|yhat|outputs?|forecasts?)(_|$)", re.I
)
_OF_INPUTS = re.compile(r"(^|_)(x|inputs?|feat|features?)(_|$)", re.I)
_OF_TARGETS = re.compile(r"(^|_)(y|targets?|labels?|out|outputs?)(_|$)", re.I)
_LABELS = re.compile(r"label|class|tag|categor|target|^y|intent", re.I)


def undone_otherwise(source: Source) -> Iterator[Pattern]:
    """`(y - mean) / std` and later `(pred + mean) * std`."""
    scaled = {}
    for node in source.of(ast.BinOp):
        left = node.left
        if (
            isinstance(node.op, ast.Div)
            and isinstance(left, ast.BinOp)
            and isinstance(left.op, ast.Sub)
        ):
            scaled[_last(left.right), _last(node.right)] = node
    if not scaled:
        return
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Mult):
            continue
        for inner, scale in ((node.left, node.right), (node.right, node.left)):
            if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add):
                for centre in (inner.left, inner.right):
                    if (_last(centre), _last(scale)) in scaled and _last(centre) and _last(scale):
                        yield source.pattern(
                            "undone otherwise", node, f"{_last(centre)}, {_last(scale)}"
                        )


def _last(node: ast.expr) -> str:
    """Return the name of a statistic: `self.y_mean`, `stats["mean"]`, `mean[0]`."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and called(node) in ("item", "to", "cpu", "float", "numpy")
    ):
        node = node.func.value
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        if isinstance(node.slice.value, str):
            return node.slice.value
        node = node.value
    return dotted(node).rpartition(".")[2]


def other_scaler(source: Source) -> Iterator[Pattern]:
    """`x_scaler.inverse_transform(pred)` where the targets have a scaler of their own."""
    owners = {
        dotted(call.func.value)
        for call in source.of(ast.Call)
        if isinstance(call.func, ast.Attribute)
        and called(call) in ("fit", "fit_transform", "transform")
    }
    if not any(_OF_TARGETS.search(each.rpartition(".")[2]) for each in owners):
        return
    for call in source.of(ast.Call):
        if called(call) != "inverse_transform" or not isinstance(call.func, ast.Attribute):
            continue
        owner = dotted(call.func.value).rpartition(".")[2]
        given = {dotted(each).rpartition(".")[2] for part in call.args for each in ast.walk(part)}
        predicted = [each for each in given if _PREDICTED.search(each)]
        if predicted and _OF_INPUTS.search(owner) and not _OF_TARGETS.search(owner):
            yield source.pattern("another scaler", call, owner)


def own_scaler(source: Source) -> Iterator[Pattern]:
    """`scaler_test = StandardScaler()` that is fitted to the test data beside that of training."""
    fitted: dict[str, list[tuple[ast.Call, str, str]]] = {}
    for call in source.of(ast.Call):
        if called(call) not in ("fit", "fit_transform") or not call.args:
            continue
        if not isinstance(call.func, ast.Attribute):
            continue
        made = resolved(source, source.scope(call), call.func.value)
        kind = called(made)
        given = dotted(call.args[0]).rpartition(".")[2]
        name = dotted(call.func.value)
        if _SCALER.search(kind) and name and given:
            fitted.setdefault(kind, []).append((call, name, given))
    for every in fitted.values():
        stems = {(_stem(given), owner) for _, owner, given in every if is_training(given)}
        for call, owner, given in every:
            if is_held_out(given) and any(
                stem == _stem(given) and other != owner for stem, other in stems
            ):
                yield source.pattern("refitted", call, owner)


def _stem(name: str) -> str:
    return (
        re.sub(
            r"(^|_)(train|training|tr|val|valid|validation|test|te|va|dev)(_|$)",
            "_",
            name,
            flags=re.I,
        )
        .strip("_")
        .lower()
    )


def own_codes(source: Source) -> Iterator[Pattern]:
    """`{c: i for i, c in enumerate(set(test_labels))}` beside a table of the training labels."""
    tables: list[tuple[ast.AST, str, str]] = []
    for table in source.of(ast.DictComp):
        over = table.generators[0].iter
        if called(over) == "enumerate" and isinstance(over, ast.Call) and over.args:
            given = {dotted(each).rpartition(".")[2] for each in ast.walk(over.args[0])} - {""}
            tables += [(table, "table", each) for each in given]
    for call in source.of(ast.Call):
        if called(call) == "factorize":
            of = call.args[0] if call.args else getattr(call.func, "value", call)
            given = {dotted(each).rpartition(".")[2] for each in ast.walk(of)} - {""}
            tables += [(call, "factorize", each) for each in given]
    for node, kind, name in tables:
        if not is_held_out(name):
            continue
        others = [
            other
            for _, same, other in tables
            if same == kind and is_training(other) and _stem(other) == _stem(name)
        ]
        if others and (_LABELS.search(_stem(name)) or kind == "factorize"):
            yield source.pattern("refitted", node, name)
