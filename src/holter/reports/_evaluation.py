"""Evaluation passes as data: metrics beside their baselines, classes, calibration, residuals."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.measured import Measured
from holter.diagnosis.facts.metrics import (
    QUANTILES,
    Classification,
    ClassMetrics,
    auroc,
    average_precision,
    calibration,
    classification,
    regression,
    unit_metrics,
)
from holter.record.events import PassMeasured, ReliabilityBin
from holter.reports._numbers import number, percent
from holter.reports.experiments import Cell, Chart, ResultTable

EXPERIMENT = "evaluation"
_WORST = 8  # classes that are listed
_FEW = 2  # classes from which on the confused one is named

Row = tuple[Cell, ...]


def evaluation_tables(facts: Facts) -> list[ResultTable]:
    """Return the last counted pass over each data set as tables."""
    return [table for measured in facts.measured for table in pass_tables(measured)]


def evaluation_document(facts: Facts) -> list[dict[str, Any]]:
    """Return the last counted pass over each data set as plain dictionaries and lists."""
    return [_document(measured) for measured in facts.measured]


def pass_tables(measured: Measured) -> list[ResultTable]:
    """Return metrics, worst classes, and losses by position and frequency of the last pass."""
    what, step = measured.last, measured.passes[-1].step
    data = measured.data or "unnamed data"
    thinned = "" if what.read == 1 else f", {percent(what.read)} of them read"
    title = f"evaluation on {data} after step {step} ({what.targets:,} targets{thinned})"
    rows = tuple(_metrics(what))
    tables = [ResultTable(EXPERIMENT, title, ("metric", "value", "compared with"), rows)]
    each = classification(what)
    if each is not None and len(each.each) > _FEW:
        tables.append(_worst("classes with the lowest F1", each.worst(_WORST), what))
    if what.scores is not None and what.scores.units > 1:
        units = sorted(unit_metrics(what.scores), key=lambda metrics: metrics.f1)[:_WORST]
        tables.append(_worst("units with the lowest F1", units, what))
    return [*tables, *_of_sequences(what)]


def _metrics(what: PassMeasured) -> Iterable[Row]:
    each = classification(what)
    if each is not None:
        yield from _of_classes(each)
    if what.scores is not None:
        yield from _of_scores(what)
    bins = _reliability(what)
    error = calibration(bins) if bins else None
    if error is not None:
        usual = f"{number(error.noise)} for a calibrated model on the same number of samples"
        yield "calibration error (ECE)", error.error, usual
        yield "mean confidence minus accuracy", error.overconfidence, ""
    if what.numbers is not None:
        sums, found = what.numbers, regression(what.numbers)
        deviation = sums.variance**0.5
        yield "explained variance (R²)", found.r2, "0 for the best constant prediction"
        yield "root mean squared error", found.rmse, f"{number(deviation)} for the mean target"
        yield "mean absolute error", found.mae, ""
        yield "mean residual (prediction - target)", found.bias, ""
        yield "spread of predictions over that of targets", found.spread, ""
        for share, quantile in zip(QUANTILES, found.quantiles, strict=True):
            yield f"residual, {share:.0%} quantile", quantile, ""


def _of_classes(each: Classification) -> Iterable[Row]:
    always = f"{number(each.majority)} for always predicting the most frequent class"
    yield "accuracy", each.accuracy, always
    yield "balanced accuracy", each.balanced, f"{number(each.chance)} without using the inputs"
    yield "macro F1", each.macro_f1, ""


def _of_scores(what: PassMeasured) -> Iterable[Row]:
    scores = what.scores
    assert scores is not None
    positive = sum(scores.yes) / max(what.targets, 1)
    area, precision = auroc(scores), average_precision(scores)
    if area is not None:
        yield "area under the ROC curve", area, "0.5 without using the inputs"
    if precision is not None:
        yield "average precision", precision, f"{number(positive)} without using the inputs"


def _worst(title: str, classes: Iterable[ClassMetrics], what: PassMeasured) -> ResultTable:
    columns = ("class", "targets", "precision", "recall", "F1", "loss", "mostly predicted as")
    rows = tuple(
        (
            one.label, one.support, one.precision, one.recall, one.f1,
            None if one.loss != one.loss else one.loss, _confused(what, one.label),
        )
        for one in classes
    )  # fmt: skip
    return ResultTable(EXPERIMENT, title, columns, rows)


def _confused(what: PassMeasured, label: int) -> str | None:
    """Return the class that is predicted most often in the place of another."""
    confusions = what.classes.confusions if what.classes is not None else ()
    first = next((one for one in confusions if one.target == label), None)
    return None if first is None else f"{first.predicted} ({first.times:,} times)"


def _of_sequences(what: PassMeasured) -> Iterable[ResultTable]:
    if what.classes is None:
        return
    positions, groups = what.classes.positions, what.classes.frequencies
    if len(positions) > 1:
        x = tuple((place.first + place.last) / 2 for place in positions)
        y = tuple(place.loss for place in positions)
        chart = Chart(x, y, "position", "loss")
        yield ResultTable(EXPERIMENT, "loss by position in the sequence", chart=chart)
    if groups:
        names = ("rarest", *("" for _ in groups[2:]), "most frequent") if len(groups) > 1 else ("",)
        columns = ("frequency", "classes", "targets", "accuracy", "loss")
        rows = tuple(
            (name, group.classes, group.targets, group.right / group.targets, group.loss)
            for name, group in zip(names, groups, strict=True)
        )
        yield ResultTable(EXPERIMENT, "loss by frequency of the class", columns, rows)


def _reliability(what: PassMeasured) -> tuple[ReliabilityBin, ...]:
    counted = what.classes or what.scores
    return () if counted is None else counted.reliability


def _document(measured: Measured) -> dict[str, Any]:
    what = measured.last
    return {
        "owner": measured.owner,
        "data": measured.data or None,
        "split": measured.split or None,
        "step": measured.passes[-1].step,
        "targets": what.targets,
        "read": what.read,
        "classification": _classification(what),
        "units": [
            _class(one, what)
            for one in (unit_metrics(what.scores) if _is_multilabel(what) and what.scores else ())
        ],
        "auroc": None if what.scores is None else auroc(what.scores),
        "average_precision": None if what.scores is None else average_precision(what.scores),
        "calibration": _calibration(what),
        "regression": _regression(what),
        "positions": [one._asdict() for one in what.classes.positions] if what.classes else [],
        "frequencies": [one._asdict() for one in what.classes.frequencies] if what.classes else [],
    }


def _is_multilabel(what: PassMeasured) -> bool:
    return what.scores is not None and what.scores.units > 1


def _classification(what: PassMeasured) -> dict[str, Any] | None:
    each = classification(what)
    if each is None:
        return None
    confusions = what.classes.confusions if what.classes is not None else ()
    return {
        "accuracy": each.accuracy,
        "majority": each.majority,
        "balanced_accuracy": each.balanced,
        "chance": each.chance,
        "macro_f1": each.macro_f1,
        "weighted_f1": each.weighted_f1,
        "classes": [_class(one, what) for one in each.each],
        "confusions": [one._asdict() for one in confusions],
    }


def _class(one: ClassMetrics, what: PassMeasured) -> dict[str, Any]:
    has_loss = what.classes is not None and one.loss == one.loss
    return {
        "label": one.label,
        "targets": one.support,
        "predicted": one.predicted,
        "precision": one.precision,
        "recall": one.recall,
        "f1": one.f1,
        "loss": one.loss if has_loss else None,
    }


def _calibration(what: PassMeasured) -> dict[str, Any] | None:
    bins = _reliability(what)
    error = calibration(bins) if bins else None
    if error is None:
        return None
    return {**asdict(error), "bins": [one._asdict() for one in bins]}


def _regression(what: PassMeasured) -> dict[str, Any] | None:
    if what.numbers is None:
        return None
    found = asdict(regression(what.numbers))
    return {**found, "quantiles": dict(zip(map(str, QUANTILES), found["quantiles"], strict=True))}
