"""Metrics that are given their arguments in the wrong order, or classes in place of scores."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.source.expressions import argument
from holter.scripts.reading.source.metric_names import makers
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.provenance import DATA, PREDICTED, frames, gathered, provenance
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted, parameters_of

_PREDICTED = re.compile(
    r"(^|_)(y_?)?(pred|preds|predicted|predictions?|probs?|scores?|logits|hat|proba)(_|$|\d)", re.I
)
_TRUE = re.compile(r"(^|_)(y|ys|true|truth|targets?|labels?|gt|gold|expected|actual)(_|$|\d)", re.I)
_RANKING = {"roc_auc_score", "average_precision_score", "roc_curve", "precision_recall_curve"}
# Metrics of scikit-learn that give another number if both arguments are exchanged.
_ORDERED = {
    *("precision_score", "recall_score", "balanced_accuracy_score", "confusion_matrix"),
    *("classification_report", "r2_score", "log_loss", "brier_score_loss", "fbeta_score"),
    *("explained_variance_score", "mean_absolute_percentage_error", "top_k_accuracy_score"),
    *("precision_recall_fscore_support", "d2_absolute_error_score", "mean_pinball_loss"),
    *("mean_poisson_deviance", "mean_gamma_deviance", "ndcg_score", "det_curve", *_RANKING),
}
_WEIGHTED = {"f1_score", "jaccard_score"}  # equal both ways unless weighed by the true classes
# Those of torchmetrics and torcheval take the predictions first.
_REVERSED = re.compile(
    r"^(Binary|Multiclass|Multilabel)?(Precision|Recall|AUROC|AveragePrecision|ConfusionMatrix"
    r"|Specificity|FBetaScore|CalibrationError|R2Score|ExplainedVariance"
    r"|MeanAbsolutePercentageError|WordErrorRate|CharErrorRate)$"
    r"|^((binary|multiclass|multilabel)_)?(precision|recall|auroc|average_precision"
    r"|confusion_matrix|specificity|fbeta_score|calibration_error|r2_score|explained_variance"
    r"|mean_absolute_percentage_error|word_error_rate|char_error_rate)$"
)
_PREDICTIONS_FIRST = {"torchmetrics", "torcheval"}
# Losses that take predictions first, and run with the labels there as well.
_LOSSES = {
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "poisson_nll_loss"),
    *("BCELoss", "BCEWithLogitsLoss", "PoissonNLLLoss"),
}
_HOMES = {"F", "functional", "nn.functional", "torch.nn.functional"}
_FIRST = ("y_true", "preds", "input")
_SECOND = ("y_pred", "y_score", "y_prob", "y_proba", "target")
_ARRAYS = ("np", "numpy", "torch")
_JOINED = ("concatenate", "cat", "array", "asarray", "hstack", "stack", "tensor")


class _Use(NamedTuple):
    """A call of a metric: its first two arguments, and whether the first is the truth."""

    call: ast.Call
    first: ast.expr
    second: ast.expr
    truth_first: bool

    @property
    def true(self) -> ast.expr:
        return self.first if self.truth_first else self.second

    @property
    def predicted(self) -> ast.expr:
        return self.second if self.truth_first else self.first


@reads
def exchanged(source: Source) -> Iterator[Pattern]:
    """`roc_auc_score(scores, labels)`, whose first argument is the truth, and hard predictions."""
    for use in _uses(source):
        call = _exchanging(source, use)
        kind = "exchanged arguments" if use.truth_first else "truth first"
        if call is not None:
            names = (_last_name(each) or ast.unparse(each) for each in (use.first, use.second))
            yield source.pattern(kind, call, ", ".join(names))
        elif called(use.call) in _RANKING and _is_hard(source, use.second, use.call):
            yield source.pattern("hard ranking", use.call, _last_name(use.second)
                                 or ast.unparse(use.second))  # fmt: skip


@reads
def exchanged_losses(source: Source) -> Iterator[Pattern]:
    """`criterion(labels, model(x))`, where both orders run and only the other one trains."""
    for call in source.of(ast.Call):
        home = dotted(call.func).rpartition(".")[0]
        is_function = called(call) in _LOSSES and home in _HOMES
        made_by = {called(each) for each in makers(source, call)}
        if not is_function and not (made_by and made_by <= _LOSSES):
            continue
        use = _use(call, truth_first=False)
        if use is not None and any(
            _flows(source, use, way) for way in frames(source, source.scope(call))
        ):
            yield source.pattern("exchanged loss", call, ast.unparse(use.first))


def _uses(source: Source) -> Iterator[_Use]:
    """Yield the calls of metrics whose arguments have an order."""
    has_reversed = bool(_PREDICTIONS_FIRST & {*source.imported.values()})
    for call in source.of(ast.Call):
        head, name = dotted(call.func).partition(".")[0], called(call)
        is_weighted = any(each.arg == "average" and isinstance(each.value, ast.Constant)
                          and each.value.value == "weighted" for each in call.keywords)  # fmt: skip
        use = None
        is_ordered = name in _ORDERED or (name in _WEIGHTED and is_weighted)
        if isinstance(source.parent(call), ast.Attribute) and name == "confusion_matrix":
            continue  # `.T` puts it right
        if is_ordered and source.imported.get(head) == "sklearn":
            use = _use(call, truth_first=True)
        elif has_reversed and _is_reversed(source, call):
            use = _use(call, truth_first=False)
        if use is not None:
            yield use


def _is_reversed(source: Source, call: ast.Call) -> bool:
    """Whether a call is of a function or an object that takes the predictions first."""
    if _is_of_reversed(source, call):
        return called(call)[:1].islower()  # a class is given options
    owner = call.func
    if isinstance(owner, ast.Attribute) and owner.attr in ("update", "forward"):
        owner = owner.value
    made = source.named(dotted(owner).rpartition(".")[2])
    return bool(made) and all(_is_of_reversed(source, each) for each in made)


def _is_of_reversed(source: Source, node: ast.expr) -> bool:
    """Whether an expression is `R2Score()`, `R2Score().to(device)` or `r2_score(...)`."""
    while isinstance(node, ast.Call) and called(node) == "to":
        if not isinstance(node.func, ast.Attribute):
            return False
        node = node.func.value
    if not isinstance(node, ast.Call) or not _REVERSED.match(called(node)):
        return False
    head = dotted(node.func).partition(".")[0]
    return source.imported.get(head) in _PREDICTIONS_FIRST


def _use(call: ast.Call, *, truth_first: bool) -> _Use | None:
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    named = {each.arg: each.value for each in call.keywords}
    first = call.args[0] if call.args else next((named[n] for n in _FIRST if n in named), None)
    second = (call.args[1] if len(call.args) > 1
              else next((named[n] for n in _SECOND if n in named), None))  # fmt: skip
    if first is None or second is None:
        return None
    return _Use(call, first, second, truth_first)


def _exchanging(source: Source, use: _Use) -> ast.Call | None:
    """Return the call that gives the arguments in the wrong order: of the metric, or around it."""
    for way in frames(source, source.scope(use.call)):
        if _flows(source, use, way):
            inside = parameters_of(way.scope)
            own = {_last_name(use.first), _last_name(use.second)} <= set(inside)
            return way.call if own and way.call is not None else use.call
    return None


def _flows(source: Source, use: _Use, way: Frame) -> bool:
    """Whether a model made what should be the truth, and none what should be predicted."""
    true = provenance(source, use.true, way)
    predicted = provenance(source, use.predicted, way)
    names = _last_name(use.true), _last_name(use.predicted)
    if (true, predicted) == (PREDICTED, DATA):
        return True
    if true == DATA or predicted == PREDICTED:
        return False
    if true == PREDICTED:
        return _is_true(names[1])
    return use.truth_first and _is_predicted(names[0]) and _is_true(names[1])


def _last_name(node: ast.expr) -> str:
    """Return the name of an argument, in whatever form it is passed: `np.array(x)`, `x.cpu()`."""
    while isinstance(node, ast.Call | ast.Subscript):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node.func, ast.Attribute) and dotted(node.func.value) not in _ARRAYS:
            node = node.func.value
        elif len(node.args) == 1:
            node = node.args[0]
        else:
            return ""
    return dotted(node).rpartition(".")[2]


def _is_predicted(name: str) -> bool:
    return bool(_PREDICTED.search(name)) and not re.search(r"true|target|label|gt\b", name, re.I)


def _is_true(name: str) -> bool:
    return bool(_TRUE.search(name)) and not _PREDICTED.search(name)


def _is_hard(source: Source, value: ast.expr, call: ast.Call) -> bool:
    """Whether scores were turned into classes: by `argmax`, `round` or a threshold."""
    return all(_hardens(source, value, way) for way in frames(source, source.scope(call)))


def _hardens(source: Source, value: ast.expr, way: Frame, depth: int = 0) -> bool:
    if depth > 6:
        return False
    if isinstance(value, ast.Name):
        filled = list(gathered(source, value.id, way.scope))
        if filled:
            return all(_hardens(source, each, way, depth + 1) for each in filled)
        found = list(origins(source, value, way))
        return bool(found) and all(
            _hardens(source, each.node, each.frame, depth + 1) for each in found
        )
    if isinstance(value, ast.Compare):
        return (
            isinstance(value.ops[0], ast.Gt | ast.GtE)
            and isinstance(value.comparators[0], ast.Constant)
            and (_is_predicted(_last_name(value.left))
                 or provenance(source, value.left, way) == PREDICTED)
        )  # fmt: skip
    if not isinstance(value, ast.Call):
        return False
    if called(value) in ("argmax", "round"):
        # `round(2)` keeps two digits of a score.
        return called(value) == "argmax" or argument(value, 0, "decimals", "ndigits") is None
    is_method = isinstance(value.func, ast.Attribute) and dotted(value.func.value) not in _ARRAYS
    if isinstance(value.func, ast.Attribute) and is_method and called(value) != "predict":
        return _hardens(source, value.func.value, way, depth + 1)
    if called(value) in (*_JOINED, "int", "list") and value.args:
        return _hardens(source, value.args[0], way, depth + 1)
    return False
