"""A logged or printed metric differs from the metric of the predictions."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.metrics import auroc, average_precision, classification, regression
from holter.diagnosis.facts.printed import Match, of_all_passes, of_batches, of_training
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import number
from holter.record.evaluations import PRINTED
from holter.record.events import FigurePrinted, PassMeasured
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import METRIC_LOGGED

_HELD_OUT = re.compile(r"^(val|valid|validation|eval|evaluation|test|dev|held_?out)[_/.\- ]+")
_EXACT = 2e-3  # difference that rounding explains
_COARSE = 10  # mean errors of small batches differ from that of the pass by more
_BINNED = ("AUROC", "average precision")  # from bins of the logit, which may be coarse
_UNITS = ("F1 of all labels", "mean F1 of the labels", "weighted F1 of the labels")
_SIZES = ("RMSE", "MSE", "MAE")  # metrics that are no shares
_OF_SEQUENCES = re.compile(r"\b(token|word|char|character|symbol)s?\b")
_FIX = (
    "sum correct predictions and samples over the pass and divide once: `correct / total`; reset"
    " both before each pass"
)
_FIX_UNITS = (
    "threshold each label separately: `torch.sigmoid(logits) > 0.5`; with a softmax at most one"
    " label exceeds 0.5"
)


def _of_classes(what: PassMeasured) -> Mapping[str, float]:
    found = classification(what)
    if found is None:
        return _of_units(what)
    values = {
        "accuracy": found.accuracy,
        "balanced accuracy": found.balanced,
        "macro F1": found.macro_f1,
        "weighted F1": found.weighted_f1,
        "error rate": 1 - found.accuracy,
    }
    return values | {f"F1 of class {one.label}": one.f1 for one in found.each}


def _of_units(what: PassMeasured) -> Mapping[str, float]:
    """Return F1 of several labels that are yes or no each, decided at 0.5."""
    units = () if what.scores is None else what.scores.each
    yes = sum(unit.yes for unit in units)
    if not yes:
        return {}
    each = [2 * unit.right / max(unit.predicted + unit.yes, 1) for unit in units]
    weighted = sum(f1 * unit.yes for f1, unit in zip(each, units, strict=True)) / yes
    whole = 2 * sum(unit.right for unit in units) / (yes + sum(unit.predicted for unit in units))
    return dict(zip(_UNITS, (whole, float(np.mean(each)), weighted), strict=True))


def _of_scores(what: PassMeasured) -> Mapping[str, float]:
    if what.scores is None:
        return {}
    values = {"AUROC": auroc(what.scores), "average precision": average_precision(what.scores)}
    return {name: value for name, value in values.items() if value is not None}


def _of_numbers(what: PassMeasured) -> Mapping[str, float]:
    if what.numbers is None:
        return {}
    found = regression(what.numbers)
    values = {"R²": found.r2, "RMSE": found.rmse, "MSE": found.rmse**2, "MAE": found.mae}
    return {name: value for name, value in values.items() if np.isfinite(value)}


@dataclass(frozen=True, slots=True)
class _Name:
    """A metric that scripts log under one of some names, and what it may mean."""

    names: re.Pattern[str]
    metric: str  # first among its meanings
    means: re.Pattern[str]
    of: Callable[[PassMeasured], Mapping[str, float]]


_KNOWN = (
    _Name(re.compile("acc|accuracy|top_?1(_acc(uracy)?)?"), "accuracy", re.compile("accuracy"),
          _of_classes),
    _Name(re.compile("(balanced_acc(uracy)?|bacc)"), "balanced accuracy", re.compile("balanced.*"),
          _of_classes),
    _Name(re.compile("err(or)?(_rate)?"), "error rate", re.compile("error rate"), _of_classes),
    _Name(re.compile("(macro_?|weighted_?|micro_?)?f1(_?score)?(_macro|_weighted|_micro)?"),
          "macro F1", re.compile(".*F1.*|accuracy"), _of_classes),
    _Name(re.compile("(roc_?)?auc|auroc|roc_auc(_score)?"), "AUROC", re.compile("AUROC"),
          _of_scores),
    _Name(re.compile("ap|average_precision|pr_?auc"), "average precision",
          re.compile("average precision"), _of_scores),
    _Name(re.compile("r2(_?score)?"), "R²", re.compile("R²"), _of_numbers),
    _Name(re.compile("rmse"), "RMSE", re.compile("RMSE"), _of_numbers),
    _Name(re.compile("mse"), "MSE", re.compile("MSE"), _of_numbers),
    _Name(re.compile("mae"), "MAE", re.compile("MAE"), _of_numbers),
)  # fmt: skip


_LOSS = _Name(re.compile("loss"), "loss", re.compile("loss"), _of_numbers)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A logged value and what the predictions of the same step give."""

    step: int
    logged: float
    computed: float
    is_share: bool

    @property
    def gap(self) -> float:
        """The difference; of metrics that are no share, relative to the larger one."""
        size = 1.0 if self.is_share else max(abs(self.logged), abs(self.computed)) or 1.0
        return abs(self.logged - self.computed) / size


@exception
def decoded(facts: Facts, pairs: list[_Pair]) -> str | None:
    """Freely decoded tokens are correct less often than teacher-forced ones."""
    names = {
        shown.what.name
        for shown in facts.run.events_of(FigurePrinted)
        if _OF_SEQUENCES.search(shown.what.name.lower()) and _shows(shown.what, pairs)
    }
    if not names or any(pair.logged > pair.computed + _EXACT for pair in pairs):
        return None
    return (
        f"`{min(names)}` is {number(pairs[-1].logged)}, while the teacher-forced predictions that"
        f" the loss receives have {number(pairs[-1].computed)}"
    )


def _shows(shown: FigurePrinted, pairs: list[_Pair]) -> bool:
    """Return whether a printed figure has all the logged values, as a share or in per cent."""
    values = np.asarray(shown.values)
    logged = np.array([pair.logged for pair in pairs])
    return any(np.isin(logged.round(4), (values / scale).round(4)).all() for scale in (1, 100))


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(METRIC_LOGGED,),
    exceptions=(decoded,),
    preview=True,
)
def misreported_metric(
    facts: Facts,
    *,
    min_passes: Annotated[int, "passes with a logged and a computed metric needed"] = 2,
    min_gap: Annotated[float, "difference that averaging over batches does not explain"] = 0.02,
    min_share: Annotated[float, "share of the passes that differ"] = 0.6,
) -> Iterator[Verdict]:
    """A logged or printed metric differs from the metric of the predictions.

    ## What it does
    Computes accuracy, F1, AUROC, R² and the like from the predictions and targets of each
    evaluation pass, and compares them with the values passed to `log()`, or printed by the script,
    under such a name in the same step; every common definition is accepted. Printed losses and
    errors are reported only if they exactly equal something else: the mean over batches of unequal
    size, or the metric of the training data.

    ## Why it matters
    The logged number decides model selection and early stopping. If it is computed on the wrong
    axis, divided by the wrong number or accumulated over epochs, both are arbitrary.

    ## Example
    ```python
    w.log(val_accuracy=correct / len(val_loader) / 64)    # bad
    w.log(val_accuracy=correct / len(val_set))            # good
    ```

    ## What to do
    Sum correct predictions and samples over the whole pass and divide once. Reset both before each
    pass, take `argmax` over the class axis, and exclude ignored targets from both.

    ## When it is wrong
    A metric of data that were not evaluated in the same step, or a different quantity under a
    common name, such as the accuracy of whole sequences. Mean batch accuracies differ slightly;
    that is noted as normal. Printed text is taken literally: `val ... acc 0.93` is a validation
    accuracy.

    ## How to confirm
    - Compute the metric of one pass with scikit-learn from all predictions and targets.
    - Compute the logged metric of the targets against themselves: it must be perfect.
    """
    for name, series in facts.run[METRIC_LOGGED].items():
        known = _known(name)
        if known is None:
            yield misreported_metric.not_examined(f"`{name}` is not a metric that holter computes")
            continue
        finite = zip(series.steps, series.values, strict=True)
        logged = {int(step): float(value) for step, value in finite if np.isfinite(value)}
        if name.startswith(PRINTED):
            match = _match(facts, name, known, logged, min_passes=min_passes, min_gap=min_gap)
            if match is not None:
                yield match
                continue
            if known.metric in (*_SIZES, "loss"):  # a script may print other units
                yield misreported_metric.clear(f"`{name}` is neither of batches nor of training")
                continue
        pairs, metric = _pairs(facts, name, known, logged)
        if not pairs and _are_of_training(facts, logged):
            yield misreported_metric.not_examined(
                f"`{name}` is shown next to a loss computed from training outputs, not from an"
                " evaluation"
            )
            continue
        if len(pairs) < min_passes:
            yield misreported_metric.not_examined(
                f"{len(pairs)} of the {min_passes} evaluation passes needed in steps with `{name}`"
            )
            continue
        verdict = _judge(name, metric, pairs, min_gap, min_share)
        excuse = misreported_metric.excused(facts, pairs) if isinstance(verdict, Finding) else None
        yield excuse or verdict


def _known(name: str) -> _Name | None:
    """Return what a metric of held-out data may mean, or None if the name says too little."""
    plain = name.lower().removeprefix(PRINTED)
    prefix = _HELD_OUT.match(plain)
    rest = plain[prefix.end() :] if prefix is not None else ""
    if rest == "loss" and name.startswith(PRINTED):
        return _LOSS
    return next((known for known in _KNOWN if known.names.fullmatch(rest)), None)


def _pairs(
    facts: Facts, name: str, known: _Name, logged: Mapping[int, float]
) -> tuple[list[_Pair], str]:
    """Return logged and computed values by the definition and the data that fit best."""
    plain = name.lower().removeprefix(PRINTED)
    wanted = "test" if plain.startswith("test") else "validation"
    candidates: dict[tuple[str, str, float], list[_Pair]] = {}
    for measured in facts.measured:
        if measured.split not in ("", wanted):
            continue
        for event in measured.passes:
            if event.step not in logged or not _is_comparable(event.what):
                continue
            for metric, value in known.of(event.what).items():
                if not known.means.fullmatch(metric):
                    continue
                for scale in (1.0,) if metric in _SIZES else (1.0, 100.0):
                    value_logged = float(logged[event.step]) / scale
                    pair = _Pair(event.step, value_logged, value, metric not in _SIZES)
                    candidates.setdefault((measured.owner, metric, scale), []).append(pair)
    if not candidates:
        return [], known.metric
    most = max(map(len, candidates.values()))
    full = {key: pairs for key, pairs in candidates.items() if len(pairs) == most}
    best = min(full, key=lambda key: float(np.median([pair.gap for pair in full[key]])))
    return full[best], best[1]


def _is_comparable(what: PassMeasured) -> bool:
    """Return whether a pass was counted whole, and on predictions of an evaluation.

    Outputs of the training are those of train mode, from before the update.
    """
    return what.read >= 1 and not what.from_training


def _are_of_training(facts: Facts, logged: Mapping[int, float]) -> bool:
    passes = [event for measured in facts.measured for event in measured.passes]
    return any(event.what.from_training for event in passes if event.step in logged)


def _match(
    facts: Facts,
    name: str,
    known: _Name,
    printed: Mapping[int, float],
    *,
    min_passes: int,
    min_gap: float,
) -> Verdict | None:
    """Report a printed value that is exactly something else."""
    if known is _LOSS:
        gap = _COARSE * min_gap
        match = of_batches(facts, printed, min_passes=min_passes, min_gap=gap)
        if match is not None:
            return _wrong_mean(
                name,
                match,
                f"the mean of batches of unequal size; the mean over all samples is"
                f" {number(match.proper)}",
                "weight each batch by its size: `total += loss.item() * len(x)`, and divide by the"
                " number of samples",
            )
        match = of_all_passes(facts, printed, min_passes=min_passes)
        if match is not None:
            return _wrong_mean(
                name,
                match,
                f"the sum of all passes so far; that of the last pass is {number(match.proper)}",
                "set the sum to zero before each pass",
            )
    match = of_training(facts, printed, known.of, min_passes=min_passes)
    if match is None:
        return None
    return misreported_metric.finding(
        f"the printed {name.removeprefix(PRINTED)}, {number(match.printed)}, is the {match.metric}"
        f" of the training data ({match.data or 'the training loader'}) on all {len(match.steps)}"
        " passes; no held-out data are evaluated in these steps",
        confidence=Confidence.LIKELY,
        onset=match.steps[0],
        evidence=(
            Evidence(
                METRIC_LOGGED,
                (match.steps[0], match.steps[-1]),
                f"{number(match.printed)} after step {match.steps[-1]}",
                name,
            ),
        ),
        fix="evaluate the validation loader: `evaluate(model, val_loader)`",
    )


def _wrong_mean(name: str, match: Match, what: str, fix: str) -> Verdict:
    return misreported_metric.finding(
        f"the printed {name.removeprefix(PRINTED)}, {number(match.printed)}, is {what}",
        confidence=Confidence.LIKELY,
        onset=match.steps[0],
        evidence=(
            Evidence(
                METRIC_LOGGED,
                (match.steps[0], match.steps[-1]),
                f"on all {len(match.steps)} passes",
                name,
            ),
        ),
        fix=fix,
    )


def _judge(name: str, metric: str, pairs: list[_Pair], min_gap: float, min_share: float) -> Verdict:
    gaps = np.array([pair.gap for pair in pairs])
    last = pairs[-1]
    span = pairs[0].step, last.step
    verb = "is" if name.startswith(PRINTED) else "is logged as"
    article = "an" if metric[0] in "aAeE" else "a"
    both = (
        f"`{name}` {verb} {number(last.logged)}, and the predictions give {article} {metric} of"
        f" {number(last.computed)}"
    )
    if np.median(gaps) <= _EXACT:
        return misreported_metric.clear(
            f"`{name}` equals the computed {metric} on {int((gaps <= _EXACT).sum())} of"
            f" {len(pairs)} passes"
        )
    evidence = (
        Evidence(METRIC_LOGGED, span, f"{number(last.logged)} after step {last.step}", name),
    )
    is_coarse = metric in _UNITS or (name.startswith(PRINTED) and metric in _BINNED)
    wrong = gaps > (min_gap if last.is_share and not is_coarse else _COARSE * min_gap)
    if metric in _UNITS:  # other thresholds than 0.5 are chosen because they give more
        wrong &= np.array([pair.logged < pair.computed for pair in pairs])
    if wrong.mean() < min_share:
        return misreported_metric.normal(
            f"{both}: a mean over batches of unequal size differs by as much", evidence
        )
    sure = not name.startswith(PRINTED) or float(np.median(gaps)) > _COARSE * min_gap
    return misreported_metric.finding(
        f"{both} (step {last.step}); they differ on {int(wrong.sum())} of {len(pairs)} passes",
        confidence=Confidence.LIKELY if sure else Confidence.HINT,
        onset=pairs[int(wrong.argmax())].step,
        evidence=evidence,
        fix=_FIX_UNITS if metric in _UNITS else _FIX,
    )
