"""The training loss sits where a model that ignores its inputs would be."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import Baseline, last, most_frequent, readings
from holter.diagnosis.facts.curve import Curve, levels, warmed_up
from holter.diagnosis.facts.label_trials import learned_aside
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import (
    ACCURACY,
    LOSS,
    OUTPUT_SPREAD,
    TARGET_CLASSES,
    TARGET_ENTROPY,
)

_NEAR = 0.02  # of the anchor: as near as the anchor itself is known
_NOISY = 0.05  # standard error, as a share of the anchor, with which nothing can be told
_WORTH = 0.01  # share of the anchor that predictions which vary so little could explain at best
_FEW = 3  # readings of predictions
_GROWS = 1.25  # times as much as before that predictions differ once they tell inputs apart
_ROUNDING = 1e-6  # share of the anchor under which differences mean nothing, growing or not
_LONG = 200  # steps at that level after which a fresh model should have left it
_WILD = 6.0  # standard deviations from the median at which a loss is cut off


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(LOSS, OUTPUT_SPREAD),
    symptom=True,
)
def loss_at_constant_predictor(facts: Facts, *, min_steps: int = 50) -> Iterator[Verdict]:
    """The training loss sits where a model that ignores its inputs would be.

    ## What it does
    A model that gives every input the same answer can reach, at best, the entropy of the labels
    (cross entropies) or the variance of the targets (squared error). Both are recorded. The rule
    compares the loss of the last third and of the last tenth of at least `min_steps` losses after
    warm-up with it: equal within three standard errors or 2 %. It then looks at the predictions.
    If they differ so little between samples that they could explain 1 % of the targets at best,
    and the accuracy is that of always answering the most frequent class, it speaks. Every fresh
    model is like that: so it is a hint for the first 200 steps at that level and likely only then,
    and where predictions differ more and more the model has begun to learn, and that is clear. If
    they do differ and only the accuracy is that of chance, among classes of like frequency, it is a
    hint.

    ## Why it matters
    Nothing of the inputs reaches the answer in a way that helps. The curve may look like learning,
    as the loss falls from its first value to this one while only the frequencies are learned.

    ## What to do
    See whether the inputs still belong to their labels where batches are made: permute both with
    one index, print a few pairs. See whether inputs are scaled, and whether units have died. If the
    loss fell to this level within a few steps and stayed, the first updates were too large: lower
    the learning rate tenfold or warm it up.

    ## When it is wrong
    Tasks with a long plateau before the first drop (retrieval, modular arithmetic, deep networks
    without normalisation) do sit there for a while. Targets that cannot be predicted from the
    inputs, as in tests with random data: then the finding is right and there is nothing to mend.
    Weights of single elements and further terms of the loss move the level that a constant answer
    reaches; such runs are mostly told to be clear.

    ## How to confirm
    - Shuffle the inputs of a batch against its labels and compute the loss again: if it stays the
      same, the model does not use its inputs.
    - Train on one batch of eight samples for 200 steps: if even that stays, the fault is in the
      model or the loop; if it falls to 0, look at the data.
    """
    say = loss_at_constant_predictor
    curve = facts.signed_curve
    if isinstance(curve, str):
        yield say.not_examined(curve)
        return
    found = facts.baseline
    if isinstance(found, str):
        yield say.not_examined(found)
        return
    warm = warmed_up(facts, curve)
    if warm is None:
        yield say.not_examined("the learning rate is still warming up")
    elif len(curve) - warm < min_steps:
        yield say.not_examined(
            f"{len(curve) - warm} of the {min_steps} losses needed after warm-up"
        )
    else:
        verdict = _judge(facts, curve.since(warm), found)
        aside = learned_aside(facts.run) if isinstance(verdict, Finding) else None
        yield verdict if aside is None else say.clear(aside)


def _judge(facts: Facts, curve: Curve, found: Baseline) -> Verdict:
    say = loss_at_constant_predictor
    parts = [_mean(curve.part(begin) / found.scale) for begin in (2 / 3, 0.9)]
    (level, error), (latest, _) = parts
    if not all(abs(mean - found.level) <= max(3 * e, _NEAR * found.level) for mean, e in parts):
        return say.clear(
            f"the loss is {latest:.4g} at the end; a constant answer would give {found.level:.4g}"
        )
    if error > _NOISY * found.level:
        return say.not_examined(f"the loss is too noisy to tell: {level:.3g} ± {error:.2g}")
    (early, _), (late, _) = _mean(curve.part(2 / 3, 5 / 6)), _mean(curve.part(5 / 6))
    if (early - late) / found.scale > max(4 * error, _NEAR / 4 * found.level):
        return say.clear(f"the loss passes {found.level:.4g} and falls on: {early:.4g}, {late:.4g}")
    onset = _since(curve, found)
    answers = _answers(facts, found, onset)
    if answers is None:
        return say.not_examined(f"too few predictions were read since step {onset}")
    if answers.accuracy is not None and answers.accuracy > answers.chance:
        return say.clear(
            f"the accuracy of {answers.accuracy:.1%} is over the {answers.prior:.1%} of always"
            " answering the most frequent class"
        )
    alike = answers.worth <= _WORTH
    if alike and answers.grows and answers.worth > _ROUNDING:
        return say.clear(
            f"the loss of {level:.4g} is that of a constant answer, but predictions begin to vary:"
            f" by {answers.spread:.2g} between samples now"
        )
    if not alike and not (
        answers.is_telling and found.level - error < level < (1 + _NEAR) * found.level
    ):
        return say.clear(
            f"the loss of {level:.4g} is that of a constant answer, but predictions vary by"
            f" {answers.spread:.2g} between samples"
        )
    why = f"predictions vary by {answers.spread:.2g} between samples"
    if not alike and answers.accuracy is not None:
        why = f"and the accuracy of {answers.accuracy:.1%} is that of the most frequent class"
    is_recent = answers.last > curve.steps[curve.place(0.5)]
    is_stuck = curve.span[1] - onset >= _LONG
    window = (onset, curve.span[1])
    return say.finding(
        f"the loss has been at {level:.4g} since step {onset}: the {found.says}"
        f" ({found.level:.4g}), which a model reaches that ignores its inputs; {why}",
        confidence=Confidence.LIKELY if alike and is_recent and is_stuck else Confidence.HINT,
        onset=onset,
        evidence=(
            Evidence(
                found.signal,
                window,
                f"a constant answer gives {found.level:.4g}; the loss is {level:.4g} ± {error:.1g}",
                found.function,
            ),
            Evidence(LOSS, window, f"{level:.4g} in the last third", curve.owner),
            Evidence(
                OUTPUT_SPREAD,
                (onset, answers.last),
                f"predictions differ by {answers.spread:.2g} between samples, which could explain"
                f" {answers.worth:.1%} of the targets at best",
                found.function,
            ),
            *_accuracy_evidence(answers, onset, found.function),
        ),
        fix="see that labels still belong to their inputs and that inputs are scaled; then train on"
        " one small batch, and with a tenth of the learning rate",
    )


@dataclass(frozen=True, slots=True)
class _Answers:
    """How predictions differ between samples, and how often they are right."""

    spread: float
    worth: float  # share of the anchor that so much spread could explain, were all of it right
    last: int  # the step of the last reading
    grows: bool  # whether they differ more and more
    accuracy: float | None = None
    chance: float = 0.0  # the largest accuracy that may still be chance
    prior: float = 0.0
    is_telling: bool = False  # whether an accuracy at chance says that nothing was learned


def _answers(facts: Facts, found: Baseline, onset: int) -> _Answers | None:
    """What predictions were like since `onset`, by the later half of what was read of them."""
    read = facts.run[OUTPUT_SPREAD].get(found.function)
    if read is None or len(at := read.steps[read.steps >= onset]) < _FEW:
        return None
    begin, last_read = int(at[len(at) // 2]), int(at[-1])
    if not len(spreads := readings(facts, OUTPUT_SPREAD, found.function, begin)):
        return None
    spread = float(np.median(spreads))
    before, latest = np.array_split(spreads, 2)
    grows = bool(len(spreads) >= 2 * _FEW and np.median(latest) > _GROWS * np.median(before))
    if found.signal is not TARGET_ENTROPY:
        return _Answers(spread, spread**2 / found.level, last_read, grows)
    known = most_frequent(facts, found.function)
    prior = 0.5 if known is None else known
    logits = spread
    if found.function == "binary_cross_entropy":  # predictions are probabilities there
        logits = spread / max(prior * (1 - prior), 1e-6)
    worth = logits**2 * (1 - prior) / found.level
    right = readings(facts, ACCURACY, found.function, begin)
    if known is None or len(right) < _FEW:
        return _Answers(spread, worth, last_read, grows)
    accuracy, error = _mean(right)
    classes = last(facts, TARGET_CLASSES, found.function) or 2
    return _Answers(
        spread,
        worth,
        last_read,
        grows,
        accuracy,
        prior + max(3 * error, 0.02 * (1 - prior)),
        prior,
        is_telling=prior <= 2 / classes and prior < 0.6 and error < 0.03 * (1 - prior),
    )


def _accuracy_evidence(answers: _Answers, onset: int, function: str) -> Iterator[Evidence]:
    if answers.accuracy is not None:
        yield Evidence(
            ACCURACY,
            (onset, answers.last),
            f"{answers.accuracy:.1%}; {answers.prior:.1%} for always answering the most frequent"
            " class",
            function,
        )


def _mean(values: Values) -> tuple[float, float]:
    """The mean and its standard error, wild values cut off.

    Not a midmean: what a constant answer gives is a mean, and losses of rare classes are skewed.
    """
    if not len(values):
        return np.nan, np.inf
    middle = float(np.median(values))
    spread = 1.4826 * float(np.median(np.abs(values - middle))) or float(values.std())
    cut = np.clip(values, middle - _WILD * spread, middle + _WILD * spread)
    return float(cut.mean()), float(cut.std() / np.sqrt(len(cut)))


def _since(curve: Curve, found: Baseline) -> int:
    """The step from which on every piece of the curve is near the anchor."""
    cut = levels(curve, 20)
    near = np.maximum(5 * cut.errors / found.scale, 2 * _NEAR * found.level)
    away = np.flatnonzero(np.abs(cut.values / found.scale - found.level) > near)
    return int(cut.steps[min(int(away[-1]) + 1 if len(away) else 0, len(cut.steps) - 1)])
