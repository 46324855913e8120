"""Metrics of batches that are averaged although they do not add up: F1, AUC, R2, RMSE."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.metrics.sample_counts import has_single_samples
from holter.scripts.reading.source.expressions import HOMES, argument, tensor_of
from holter.scripts.reading.source.metric_names import makers
from holter.scripts.reading.source.origins import Frame, origins, returned
from holter.scripts.reading.source.provenance import frames
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_OF_ALL = {
    *("f1_score", "fbeta_score", "precision_score", "recall_score", "jaccard_score"),
    *("roc_auc_score", "average_precision_score", "r2_score", "explained_variance_score"),
    *("cohen_kappa_score", "matthews_corrcoef", "balanced_accuracy_score"),
    *("pearsonr", "spearmanr", "kendalltau", "concordance_index"),
}
_ADDITIVE = ("micro", "samples")  # averages that are means over samples
_PACKAGES = {"sklearn", "scipy", "lifelines"}
_MEANS = {"mean", "fmean", "average", "nanmean", "avg"}
_LOADER = re.compile(r"(^|[_.])(dl|batches)$|loader(?!s)", re.I)
_METER = re.compile(r"meter|average|running|mean", re.I)
_BATCH = re.compile(r"\d+|.*(batch|bs|chunk).*", re.I)  # the size of a split: no folds
_SAMPLES = re.compile(r"len\(.*\)|.*\.(size\(0\)|shape\[0\]|numel\(\))|(batch_?size|bs|n)", re.I)
_WRONG = re.compile(r"wrong|incorrect|miss", re.I)
_COUNTS = re.compile(r"(^|_)(tp|fp|fn)($|_|s$)|(true|false)_(pos|neg)", re.I)
_SMALL = re.compile(r"(^|[_.])(eps|epsilon|smooth|tiny)($|_)", re.I)
_MEAN_ERRORS = {"mse_loss", "MSELoss", "mean_squared_error"}
_SPLITTING = {"split", "batched"}
_REDUCING = {"sum", "mean", "var", "count_nonzero"}
_JOINING = {"cat", "concat", "concatenate", "hstack", "vstack"}
_Named = ast.Name | ast.Attribute | ast.Subscript
_DEEPEST = 6


class _Gathering(NamedTuple):
    """A value of each batch that is averaged over a loop, and the loop."""

    value: ast.expr
    over: ast.expr
    body: list[ast.AST]


class _Mean(NamedTuple):
    """A mean that a scope takes: where it does, and the names that stand in it."""

    scope: ast.AST
    line: int
    names: set[str]


@reads
def averaged(source: Source) -> Iterator[Pattern]:
    """`scores.append(2 * tp / (2 * tp + fp + fn))` in a loop over batches, and `mean(scores)`."""
    if has_single_samples(source) or _has_one_batch(source):
        return
    for each in (*_in_loops(source), *_in_comprehensions(source)):
        if any(called(node) == "backward" for part in each.body for node in source.walk(part)):
            continue  # a running figure of the training
        for way in frames(source, source.scope(each.value)):
            name = _metric(source, each.value, way)
            if name and _is_of_batches(source, each.over, way):
                kind = "averaged roots" if name == "root" else "averaged metrics"
                yield source.pattern(kind, each.value, name)
                break


def _has_one_batch(source: Source) -> bool:
    """Whether a loader has a batch of all samples: `DataLoader(val, batch_size=len(val))`."""
    return any(
        called(call) == "DataLoader"
        and any(each.arg == "batch_size" and called(each.value) == "len" for each in call.keywords)
        for call in source.of(ast.Call)
    )


def _in_loops(source: Source) -> Iterator[_Gathering]:
    """Yield what loops add up, append or pass to a meter, if its mean is taken afterwards."""
    means = list(_means(source))
    for more in source.of(ast.AugAssign):
        loop = _loop(source, more) if isinstance(more.op, ast.Add) else None
        if loop is not None and _is_averaged(source, loop, ast.unparse(more.target), means):
            yield _Gathering(more.value, loop.iter, [*loop.body])
    for call in source.of(ast.Call):
        if called(call) not in ("append", "update") or not isinstance(call.func, ast.Attribute):
            continue
        loop, name = _loop(source, call), ast.unparse(call.func.value)
        if loop is None or not call.args:
            continue
        if called(call) == "update":
            is_averaged = _is_meter(source, name)
        else:
            is_averaged = _is_averaged(source, loop, name, means)
        if is_averaged:
            yield _Gathering(call.args[0], loop.iter, [*loop.body])


def _means(source: Source) -> Iterator[_Mean]:
    """Yield the means and the divisions of a file."""
    divided: list[ast.expr] = [each for each in source.of(ast.Call) if called(each) in _MEANS]
    divided += [each.left for each in source.of(ast.BinOp) if isinstance(each.op, ast.Div)]
    divided += [each.target for each in source.of(ast.AugAssign) if isinstance(each.op, ast.Div)]
    for each in divided:
        parts = source.walk(each)
        if not any(called(part) in _JOINING for part in parts):  # of the samples of all batches
            names = {ast.unparse(part) for part in parts if isinstance(part, _Named)}
            yield _Mean(source.scope(each), each.lineno, names)


def _is_averaged(source: Source, loop: ast.For, name: str, means: list[_Mean]) -> bool:
    """Whether the mean is taken after a loop of what it gathered."""
    scope, end = source.scope(loop), loop.end_lineno or loop.lineno
    return any(name in mean.names for mean in means if mean.scope is scope and mean.line > end)


def _is_meter(source: Source, name: str) -> bool:
    """Whether what is updated keeps a mean, by its name or that of its class."""
    made = source.named(name.rpartition(".")[2])
    return any(_METER.search(each) for each in (name, *map(called, made)))


def _loop(source: Source, node: ast.AST) -> ast.For | None:
    """Return the innermost loop around a node."""
    inner = next((each for each in source.above(node)
                  if isinstance(each, ast.For | ast.While | Function)), None)  # fmt: skip
    return inner if isinstance(inner, ast.For) else None


def _in_comprehensions(source: Source) -> Iterator[_Gathering]:
    """Yield what `mean([f1(p, y) for p, y in batches])` averages, also by way of a name."""
    every: list[ast.ListComp | ast.GeneratorExp] = [*source.of(ast.ListComp)]
    for made in (*every, *source.of(ast.GeneratorExp)):
        if len(made.generators) != 1:
            continue
        above = source.parent(made)
        scope = source.scope(made)
        is_mean = called(above or made) in {*_MEANS, "sum"}
        if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
            name = above.targets[0].id
            is_mean = any(
                called(call) in {*_MEANS, "sum"} and source.scope(call) is scope
                and any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(call))
                for call in source.of(ast.Call)
            )  # fmt: skip
        if is_mean:
            yield _Gathering(made.elt, made.generators[0].iter, [made])


def _is_of_batches(source: Source, over: ast.expr, way: Frame) -> bool:
    """Whether a loop goes through batches: of a loader, of slices or of a split."""
    while isinstance(over, ast.Call) and called(over) in ("enumerate", "tqdm") and over.args:
        over = over.args[0]
    if isinstance(over, ast.Call):
        if called(over) == "zip":
            return bool(over.args) and all(_is_of_batches(source, each, way) for each in over.args)
        if called(over) == "range" and len(over.args) == 3:
            step = over.args[2]
            return not isinstance(step, ast.Constant) or step.value != 1
        if called(over) == "DataLoader":
            return not any(each.arg == "batch_sampler" for each in over.keywords)
        size = over.args[-1] if over.args else None
        return called(over) in _SPLITTING and bool(size and _BATCH.fullmatch(ast.unparse(size)))
    found = list(origins(source, over, way)) if isinstance(over, ast.Name) else []
    if found and all(isinstance(each.node, ast.Call | ast.Name) for each in found):
        return all(_is_of_batches(source, each.node, each.frame) for each in found)
    return bool(_LOADER.search(dotted(over)))


def _metric(source: Source, value: ast.expr, way: Frame, depth: int = 0) -> str:
    """Return the name of a metric that is no mean over samples, or ""."""
    value = _bare(value)
    if depth > _DEEPEST:
        return ""
    if isinstance(value, ast.Name):
        found = list(origins(source, value, way))
        names = {_metric(source, each.node, each.frame, depth + 1) for each in found}
        return names.pop() if len(names) == 1 else ""
    if isinstance(value, ast.Call):
        if _is_library(source, value):
            return called(value)
        if called(value) == "sqrt":
            return "root" if _is_mean(source, tensor_of(value), way) else ""
        origin = returned(source, value, way)
        return _metric(source, origin.node, origin.frame, depth + 1) if origin else ""
    if not isinstance(value, ast.BinOp):
        return ""
    if isinstance(value.op, ast.Pow):
        is_root = isinstance(value.right, ast.Constant) and value.right.value == 0.5
        return "root" if is_root and _is_mean(source, value.left, way) else ""
    if isinstance(value.op, ast.Div):
        return _ratio(source, value, way)
    if isinstance(value.op, ast.Sub) and isinstance(value.right, ast.BinOp):
        return "R2" if _is_unexplained(source, value.right) else ""
    return ""


def _is_mean(source: Source, value: ast.expr | None, way: Frame) -> bool:
    """Whether a value is the mean of a batch: of all its samples, not of each."""
    value = _bare(value) if value is not None else None
    if isinstance(value, ast.Name):
        found = [each.node for each in origins(source, value, way)]
        return bool(found) and all(
            not isinstance(each, ast.Name) and _is_mean(source, each, way) for each in found
        )
    if not isinstance(value, ast.Call):
        return False
    if called(value) == "mean":
        of_module = isinstance(value.func, ast.Attribute) and dotted(value.func.value) in HOMES
        return len(value.args) == of_module and not value.keywords
    return any(
        called(each) in _MEAN_ERRORS and "'none'" not in ast.unparse(each)
        for each in (value, *makers(source, value))
    )


def _bare(value: ast.expr) -> ast.expr:
    """Return a value without what makes it a number, or weighs it by the size of the batch."""
    while True:
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and called(value) in ("item", "cpu", "detach", "numpy")
        ):
            value = value.func.value
        elif isinstance(value, ast.Call) and called(value) in ("float", "int") and value.args:
            value = value.args[0]
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
            sides = [each for each in (value.left, value.right)
                     if not isinstance(each, ast.Constant)
                     and not _SAMPLES.fullmatch(ast.unparse(each))]  # fmt: skip
            if len(sides) != 1:
                return value
            value = sides[0]
        elif isinstance(value, ast.IfExp):
            value = value.orelse if isinstance(value.body, ast.Constant) else value.body
        else:
            return value


def _is_library(source: Source, call: ast.Call) -> bool:
    head = dotted(call.func).partition(".")[0]
    if called(call) not in _OF_ALL or source.imported.get(head) not in _PACKAGES:
        return False
    return not any(each.arg == "average" and isinstance(each.value, ast.Constant)
                   and each.value.value in _ADDITIVE for each in call.keywords)  # fmt: skip


def _ratio(source: Source, value: ast.BinOp, way: Frame) -> str:
    """Return "ratio of counts" for `a / (a + b)`, "harmonic mean" for `2 * p * r / (p + r)`."""
    by = _guarded(value.right)
    if isinstance(by, ast.Name):
        found = list(origins(source, by, way))
        by = _guarded(found[0].node) if len(found) == 1 else by
    over = _operands(value.left, ast.Mult)
    parts = [_operands(each, ast.Mult) for each in _operands(by, ast.Add)]
    if len(parts) < 2 or any(len(each) != 1 for each in parts):
        return ""
    added = {ast.unparse(each[0]): each[0] for each in parts}
    factors = [ast.unparse(each) for each in over]
    if len(factors) == 1 and factors[0] in added and len(added) > 1:
        return "ratio of counts" if _are_counts(source, [*added.values()], way) else ""
    return "harmonic mean" if len(factors) == 2 and {*factors} == {*added} else ""


def _operands(node: ast.expr, kind: type[ast.operator]) -> list[ast.expr]:
    """Return what is added or multiplied, without constants: `p` and `r` of `2 * p * r + eps`."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, kind):
            return [*_operands(node.left, kind), *_operands(node.right, kind)]
        if isinstance(node.op, ast.Add) and _is_small(node.right):
            return _operands(node.left, kind)
    return [] if _is_small(node) else [node]


def _is_small(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or bool(_SMALL.search(dotted(node)))


def _are_counts(source: Source, parts: list[ast.expr], way: Frame) -> bool:
    """Whether numbers count predictions against labels, in all samples of a batch."""
    names = [ast.unparse(each) for each in parts]
    if any(_WRONG.search(each) for each in names):
        return False  # right and wrong make up the batch, and their share adds up
    values = [found.node for each in parts if isinstance(each, ast.Name)
              for found in origins(source, each, way)]  # fmt: skip
    if any(_has_axis(each) for each in (*parts, *values)):
        return False
    if any(_COUNTS.search(each) for each in names):
        return True
    return len(values) == len(parts) and all(_is_count(each) for each in values)


def _is_count(value: ast.expr) -> bool:
    """Whether a value is the size of an intersection: `(p & ~y).sum()`, `(p * (1 - y)).sum()`."""
    value = _bare(value)
    if not isinstance(value, ast.Call) or called(value) not in ("sum", "count_nonzero"):
        return False
    both = tensor_of(value)
    if not isinstance(both, ast.BinOp):
        return both is not None and called(both) == "logical_and"
    sides = [each.right if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Sub) else each
             for each in (both.left, both.right)]  # fmt: skip
    return isinstance(both.op, ast.BitAnd) or (
        isinstance(both.op, ast.Mult) and all(isinstance(each, ast.Name) for each in sides)
    )


def _has_axis(value: ast.expr) -> bool:
    """Whether something is reduced along an axis: a figure of each sample or class."""
    return any(
        called(node) in _REDUCING and argument(node, 0, "dim", "axis") is not None
        for node in ast.walk(value)
        if isinstance(node, ast.Call)
    )


def _guarded(node: ast.expr) -> ast.expr:
    """Return a denominator without what keeps it from zero: `max(n, 1)`, `n.clamp(min=1)`."""
    if isinstance(node, ast.Call) and called(node) == "max" and len(node.args) == 2:
        return next((each for each in node.args if not isinstance(each, ast.Constant)), node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and called(node) in (
        "clamp", "clamp_min", "clip",
    ):  # fmt: skip
        return node.func.value
    if isinstance(node, ast.BoolOp):
        return node.values[0]
    return node


def _is_unexplained(source: Source, value: ast.BinOp) -> bool:
    """Whether a ratio is of squared errors and the variance of the batch: `rss / y.var()`."""
    if not isinstance(value.op, ast.Div) or _has_axis(value):
        return False
    for node in source.walk(value.right):
        above = source.parent(node)
        is_centred = isinstance(above, ast.BinOp) and isinstance(above.op, ast.Sub)
        if called(node) == "var" or (called(node) == "mean" and is_centred):
            return True
    return False
