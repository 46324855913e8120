"""The training loss is no lower than that of the best constant prediction."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import Baseline, last, most_frequent, readings
from holter.diagnosis.facts.curve import Curve, levels, warmed_up
from holter.diagnosis.facts.progress import learning_in_the_lab
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import exception, rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ACCURACY,
    LOSS,
    OUTPUT_SPREAD,
    TARGET_CLASSES,
    TARGET_ENTROPY,
)

_FEW = 3  # readings of predictions
_GROWS = 1.25  # times the earlier spread of predictions, once they tell inputs apart
_WILD = 6.0  # standard deviations from the median at which a loss is cut off


@dataclass(frozen=True, slots=True)
class _Predictions:
    """How predictions differ between samples, and how often they are correct."""

    spread: float
    worth: float  # share of the baseline that this spread could explain, if all of it were right
    last: int  # the step of the last reading
    grows: bool  # whether they differ more and more
    accuracy: float | None = None
    chance: float = 0.0  # the largest accuracy that may still be chance
    prior: float = 0.0  # accuracy of always predicting the most frequent class
    is_telling: bool = False  # whether an accuracy at chance means that nothing was learned


@exception
def begins_to_learn(predictions: _Predictions, worth: float) -> str | None:
    """Predictions differ more and more between inputs, so the model has begun to learn."""
    if not predictions.grows or not worth / 100 < predictions.worth <= worth:
        return None
    return (
        "the loss is that of the best constant prediction, but the spread of predictions grows"
        f" and reaches {predictions.spread:.2g}"
    )


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(LOSS, OUTPUT_SPREAD),
    symptom=True,
    exceptions=(begins_to_learn,),
)
def loss_at_constant_predictor(
    facts: Facts,
    *,
    min_steps: Annotated[int, "losses needed after warm-up"] = 50,
    near: Annotated[float, "distance from the best constant prediction that counts as 0"] = 0.02,
    max_noise: Annotated[float, "standard error of the loss, as a share, that is too noisy"] = 0.05,
    worth: Annotated[float, "share of the targets that similar predictions can explain"] = 0.01,
    patience: Annotated[int, "steps after which a new model should be better"] = 200,
) -> Iterator[Verdict]:
    """The training loss is no lower than that of the best constant prediction.

    ## What it does
    A model that predicts the same for every input reaches at best the entropy of the labels (cross
    entropies) or the variance of the targets (squared error). The rule reports a loss that ends at
    or above this level and does not fall, if the accuracy is not better than that of the most
    frequent class. It is likely if predictions hardly differ between inputs for long, otherwise a
    hint.

    ## Why it matters
    The model uses nothing of its inputs, or nothing that helps. The curve may look like learning:
    the loss falls from its first value to this one while only class frequencies are learned.

    ## Example
    ```python
    inputs = inputs[torch.randperm(len(inputs))]                                      # bad
    order = torch.randperm(len(inputs)); inputs, labels = inputs[order], labels[order]   # good
    ```

    ## What to do
    Check that inputs and labels belong together where batches are made: permute both with one
    index, print a few pairs. Check that inputs are scaled and units are alive. If the loss fell to
    this level within a few steps, the first updates were too large: lower the learning rate 10
    times or warm it up.

    ## When it is wrong
    Tasks with a long plateau before the first drop (retrieval, modular arithmetic, deep networks
    without normalisation) stay at this level for a while. Targets that cannot be predicted from
    the inputs, such as random test data: the finding is right, and there is nothing to fix.

    ## How to confirm
    - Shuffle the inputs of a batch against its labels and compute the loss again: if it stays the
      same, the model does not use its inputs.
    - Train on one batch of 8 samples for 200 steps: if the loss stays, the fault is in the model or
      the loop; if it falls to 0, look at the data.
    """
    say = loss_at_constant_predictor
    curve = facts.signed_curve
    if isinstance(curve, str):
        yield say.not_examined(curve)
        return
    baseline = facts.baseline
    if isinstance(baseline, str):
        yield say.not_examined(baseline)
        return
    warm = warmed_up(facts, curve)
    if warm is None:
        yield say.not_examined("the learning rate is still warming up")
        return
    if len(curve) - warm < min_steps:
        yield say.not_examined(
            f"{len(curve) - warm} of the {min_steps} losses needed after warm-up"
        )
        return
    curve = curve.since(warm)
    end = _end(curve, baseline)
    learned = _below_or_falling(end, near)
    if learned is not None:
        yield say.clear(learned)
        return
    if end.error > max_noise * end.constant:
        yield say.not_examined(f"the loss is too noisy: {end.level:.3g} ± {end.error:.2g}")
        return
    onset = _onset(curve, baseline, end, near)
    predictions = _predictions(facts, baseline, onset)
    if predictions is None:
        yield say.not_examined(f"too few predictions were read since step {onset}")
        return
    is_stuck = curve.span[1] - onset >= patience
    helpful = _helpful(end, predictions, worth, is_stuck=is_stuck)
    if helpful is not None:
        yield say.clear(helpful)
        return
    is_recent = predictions.last > curve.steps[curve.place(0.5)]
    sure = is_stuck and is_recent and predictions.worth <= worth
    yield say.excused(predictions, worth) or _finding(
        facts, curve, end, predictions, (baseline, onset, sure)
    )


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a loss curve beside the best constant prediction, both per element."""

    constant: float
    level: float  # mean of the last third
    error: float  # its standard error
    latest: float  # mean of the last tenth
    latest_error: float
    fall: float  # within the last third

    @property
    def is_above(self) -> bool:
        """Whether the loss is surely above the best constant prediction."""
        return self.level - 3 * self.error > self.constant


def _end(curve: Curve, baseline: Baseline) -> _End:
    parts = ((2 / 3, 1), (0.9, 1), (2 / 3, 5 / 6), (5 / 6, 1))
    means = [_mean(curve.part(*part) / baseline.scale) for part in parts]
    (level, error), (latest, latest_error), (early, _), (late, _) = means
    return _End(baseline.level, level, error, latest, latest_error, early - late)


def _below_or_falling(end: _End, near: float) -> str | None:
    """Return that the loss is better than the best constant prediction or on its way, or None."""
    for mean, error in ((end.level, end.error), (end.latest, end.latest_error)):
        if mean < end.constant - max(3 * error, near * end.constant):
            return (
                f"the loss is {end.latest:.3g} at the end; the best constant prediction gives"
                f" {end.constant:.3g}"
            )
    if end.fall > max(4 * end.error, near / 4 * end.constant):
        return (
            f"the loss is {end.latest:.3g}, close to the best constant prediction"
            f" ({end.constant:.3g}) or above, but still falling: by {end.fall:.2g} in the last"
            " third"
        )
    return None


def _helpful(end: _End, read: _Predictions, worth: float, *, is_stuck: bool) -> str | None:
    """Return in which way predictions help, or may help, in spite of the loss; None if not."""
    if read.accuracy is not None and read.accuracy > read.chance:
        return (
            f"accuracy is {read.accuracy:.0%}; always predicting the most frequent class gives"
            f" {read.prior:.0%}"
        )
    if read.worth <= worth or read.is_telling or end.is_above:
        return None
    if is_stuck and end.level > end.constant - end.error:
        return None
    return (
        f"the loss is {end.level:.3g}, that of the best constant prediction, but predictions vary"
        f" by {read.spread:.2g} between samples"
    )


def _finding(
    facts: Facts,
    curve: Curve,
    end: _End,
    read: _Predictions,
    context: tuple[Baseline, int, bool],
) -> Verdict:
    baseline, onset, sure = context
    window = (onset, curve.span[1])
    accuracy = (
        ""
        if read.accuracy is None
        else f"accuracy {read.accuracy:.0%}, {read.prior:.0%} for the most frequent class"
    )
    evidence = [
        Evidence(
            baseline.signal,
            window,
            f"best constant prediction {end.constant:.3g} ({baseline.says}); loss"
            f" {end.level:.3g} ± {end.error:.1g}",
            baseline.function,
        ),
        Evidence(LOSS, window, f"{end.level:.3g} in the last third", curve.owner),
        Evidence(
            OUTPUT_SPREAD,
            (onset, read.last),
            f"{read.spread:.2g} between samples, which explains at most"
            f" {min(read.worth, 1):.1%} of the targets",
            baseline.function,
        ),
    ]
    if accuracy:
        evidence.append(Evidence(ACCURACY, (onset, read.last), accuracy, baseline.function))
    fix = (
        "print a few inputs beside their labels and check that inputs are scaled; then train on one"
        " small batch, and with a tenth of the learning rate"
    )
    lab = learning_in_the_lab(facts)
    if lab is not None:
        evidence.append(lab)
        fix = "look outside the step, which learns in the lab: at the loop, optimizer and schedule"
    level = f"the loss has stayed at {end.level:.3g} since step {onset}"
    if end.is_above:
        level = f"the loss is {end.level:.3g} at the end"
    return loss_at_constant_predictor.finding(
        f"{level}; the best constant prediction gives {end.constant:.3g};"
        f" predictions vary by {read.spread:.2g} between samples"
        + (f", {accuracy}" if accuracy else ""),
        confidence=Confidence.LIKELY if sure else Confidence.HINT,
        onset=onset,
        evidence=evidence,
        fix=fix,
    )


def _predictions(facts: Facts, baseline: Baseline, onset: int) -> _Predictions | None:
    """Return what predictions were like since `onset`, by the later half of their readings."""
    series = facts.run[OUTPUT_SPREAD].get(baseline.function)
    if series is None or len(steps := series.steps[series.steps >= onset]) < _FEW:
        return None
    begin, last_read = int(steps[len(steps) // 2]), int(steps[-1])
    if not len(spreads := readings(facts, OUTPUT_SPREAD, baseline.function, begin)):
        return None
    spread = float(np.median(spreads))
    before, latest = np.array_split(spreads, 2)
    grows = bool(len(spreads) >= 2 * _FEW and np.median(latest) > _GROWS * np.median(before))
    if baseline.signal is not TARGET_ENTROPY:
        return _Predictions(spread, spread**2 / baseline.level, last_read, grows)
    largest_class = most_frequent(facts, baseline.function)
    prior = 0.5 if largest_class is None else largest_class
    logits = spread
    if baseline.function == "binary_cross_entropy":  # predictions are probabilities there
        logits = spread / max(prior * (1 - prior), 1e-6)
    worth = logits**2 * (1 - prior) / baseline.level
    accuracies = readings(facts, ACCURACY, baseline.function, begin)
    if largest_class is None or len(accuracies) < _FEW:
        return _Predictions(spread, worth, last_read, grows)
    accuracy, error = _mean(accuracies)
    classes = last(facts, TARGET_CLASSES, baseline.function) or 2
    return _Predictions(
        spread,
        worth,
        last_read,
        grows,
        accuracy,
        prior + max(3 * error, 0.02 * (1 - prior)),
        prior,
        is_telling=prior <= 2 / classes and prior < 0.6 and error < 0.03 * (1 - prior),
    )


def _mean(values: Values) -> tuple[float, float]:
    """Return the mean and its standard error, with outliers cut off.

    Not a midmean: the best constant prediction gives a mean, and losses of rare classes are skewed.
    """
    if not len(values):
        return np.nan, np.inf
    middle = float(np.median(values))
    spread = 1.4826 * float(np.median(np.abs(values - middle))) or float(values.std())
    cut = np.clip(values, middle - _WILD * spread, middle + _WILD * spread)
    return float(cut.mean()), float(cut.std() / np.sqrt(len(cut)))


def _onset(curve: Curve, baseline: Baseline, end: _End, near: float) -> int:
    """Return the step since which the loss is near the best constant prediction, or above it."""
    cut = levels(curve, 20)
    allowed = np.maximum(5 * cut.errors / baseline.scale, 2 * near * baseline.level)
    distance = baseline.level - cut.values / baseline.scale
    away = np.flatnonzero((distance if end.is_above else np.abs(distance)) > allowed)
    return int(cut.steps[min(int(away[-1]) + 1 if len(away) else 0, len(cut.steps) - 1)])
