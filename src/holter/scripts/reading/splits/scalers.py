"""Scalers and codes that are made again for held-out data, or undone by another formula."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.split_names import is_held_out, is_training
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_SCALER = re.compile(r"(Scaler|Encoder|Binarizer|Imputer|Vectorizer|PCA|Discretizer)$")
_PREDICTED = re.compile(
    r"(^|_)(preds?|predictions?|predicted|y_?hat|yhat|outputs?|forecasts?)(_|$)", re.I
)
_OF_INPUTS = re.compile(r"(^|_)(x|inputs?|feat|features?)(_|$)", re.I)
_OF_TARGETS = re.compile(r"(^|_)(y|targets?|labels?|out|outputs?)(_|$)", re.I)
_LABELS = re.compile(r"label|class|tag|categor|target|^y|intent", re.I)
_HELD_OUT = re.compile(r"(^|_)(test|val|va|te|valid|validation|eval|dev|holdout)(_|$|\d)", re.I)
_FITS = {"fit", "fit_transform", "adapt"}
# Methods that have no `transform` for new data, or that are trained for an evaluation.
_OTHERS = re.compile(r"tsne|mds|spectral|knn|clf|classifier|probe|calib|temperature|cluster", re.I)
_VOCABULARY = re.compile(r"^(build_|make_|get_|create_)?(vocab|vocabulary)(_from_iterator)?$", re.I)


@reads
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


@reads
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


@reads
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


@reads
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


@reads
def refitted(source: Source) -> Iterator[Pattern]:
    """`scaler.fit_transform(x_test)` where the same was fitted to other data before."""
    fits: dict[str, list[ast.Call]] = {}
    for node in source.of(ast.Call):
        if not node.args:
            continue
        if called(node) in _FITS and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if not _OTHERS.search(owner) and not _is_made_by_other(source, owner):
                fits.setdefault(owner, []).append(node)
        elif _VOCABULARY.match(called(node)):
            fits.setdefault(called(node), []).append(node)
    for owner, calls in fits.items():
        held_out = [call for call in calls if _is_held_out(call.args[0])]
        if held_out and len(held_out) < len(calls):
            for call in held_out:
                yield source.pattern("refitted", call, owner)


def _is_made_by_other(source: Source, owner: str) -> bool:
    """Whether a name is given to an object of such a method: `embed = TSNE(2)`."""
    return any(
        name == owner and _OTHERS.search(called(value))
        for scope in source.scopes
        for name, value, _ in source.assigned(scope)
    )


def _is_held_out(node: ast.expr) -> bool:
    """Whether an expression is named, or indexed, as held-out data are."""
    if isinstance(node, ast.ListComp | ast.GeneratorExp) and len(node.generators) == 1:
        return _is_held_out(node.generators[0].iter)
    if isinstance(node, ast.Subscript):
        return _is_held_out(node.value) or _is_held_out(node.slice)
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return bool(_HELD_OUT.search(name))


@reads
def unscaled_predictions(source: Source) -> Iterator[Pattern]:
    """`exp(model(x))` where the targets are `(log(y) - mean) / std`, and nothing undoes it."""
    for scope in source.scopes:
        for name, value, _ in source.assigned(scope):
            scale = _standardised(source, scope, value)
            if not scale or _is_multiplied_by(source, scale):
                continue
            for call in source.of(ast.Call):
                if called(call) in ("exp", "expm1") and call.args:
                    inner = resolved(source, source.scope(call), call.args[0])
                    names = {dotted(each) for each in ast.walk(inner)}
                    made = ast.unparse(inner)
                    if re.match(r"(self\.)?(model|net|mlp)\(", made) and scale not in names:
                        yield source.pattern("unscaled predictions", call, f"{name}, {scale}")
                        return


def _standardised(source: Source, scope: ast.AST, value: ast.expr) -> str:
    """Return the deviation that logarithms are divided by: `(log_y - mean) / std`."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Div):
        return ""
    if not isinstance(value.left, ast.BinOp) or not isinstance(value.left.op, ast.Sub):
        return ""
    of, scale = value.left.left, dotted(value.right)
    spread = resolved(source, scope, value.right)
    logs = ast.unparse(resolved(source, scope, of))
    is_log = re.search(r"\blog(1p)?\(", logs)
    return scale if is_log and called(spread) == "std" else ""


def _is_multiplied_by(source: Source, scale: str) -> bool:
    last = scale.rpartition(".")[2]
    return any(
        isinstance(node.op, ast.Mult)
        and last in {dotted(each).rpartition(".")[2] for each in (node.left, node.right)}
        for node in source.of(ast.BinOp)
    ) or "inverse_transform" in source.code(source.tree)


@reads
def sparse_spread(source: Source) -> Iterator[Pattern]:
    """`x / (x[train_mask].std(0) + 1e-8)` of words that no training row may have."""
    text = source.code(source.tree)
    if not re.search(r"words?\b|vocab|bag|multi_?hot|tf_?idf|one_?hot", text, re.I):
        return
    for scope in source.scopes:
        for name, value, _ in source.assigned(scope):
            of = (
                value.func.value
                if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
                else None
            )
            if called(value) != "std" or not isinstance(of, ast.Subscript):
                continue
            rows = dotted(of.slice)
            if not re.search(r"(train|tr)_?(mask|idx|index|nodes|rows)$", rows):
                continue
            for node in source.of(ast.BinOp):
                if source.scope(node) is scope and isinstance(node.op, ast.Div):
                    tiny = _tiny(node.right, name)
                    whole = dotted(of.value) in {dotted(each) for each in ast.walk(node.left)}
                    if tiny and whole and not _is_mended(source, scope, name):
                        yield source.pattern("tiny spread", node, name)


def _tiny(node: ast.expr, name: str) -> bool:
    """Whether a denominator is a deviation with a number that keeps it from zero, and no more."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        size = getattr(node.right, "value", None)
        return dotted(node.left) == name and isinstance(size, float) and size <= 1e-5
    if called(node) in ("clamp", "clamp_min", "clip") and isinstance(node, ast.Call):
        sizes = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
        return name in ast.unparse(node) and any(
            isinstance(each, float) and each <= 1e-5 for each in sizes
        )
    return False


def _is_mended(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether a scope replaces small deviations: `std[std < 0.05] = 1.0`."""
    return any(
        isinstance(node.targets[0], ast.Subscript) and dotted(node.targets[0].value) == name
        for node in source.of(ast.Assign)
        if source.scope(node) is scope
    )
