"""Validation never beats a constant prediction while training does."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.validation import (
    Curves,
    chance,
    fitted_accuracy,
    has_other_inputs,
    rise_score,
    smooth,
)
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ACCURACY, LOSS, VAL_ACCURACY, VAL_LOSS

_TREND = 2.0  # standard deviations of a trend that chance would give
_ANOTHER_SCALE = 20  # times the constant predictor's loss: a sum over the batch, for instance


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(LOSS, VAL_LOSS),
)
def validation_mismatch(
    facts: Facts, *, min_passes: int = 3, learned: float = 0.8, beaten: float = 0.95
) -> Iterator[Verdict]:
    """Validation never beats a constant prediction while training does.

    ## What it does
    A model that ignores its input can reach the entropy of the labels (cross-entropy) or the
    variance of the targets (squared error). The rule speaks where training gets under `learned` of
    that while the validation loss, over at least `min_passes` passes, is never under `beaten` of it
    and does not improve from the first pass to the last; where validation rises and gets worse than
    that, it is enough that training is under `beaten` of it. It is likely, and no hint, where the
    accuracy of validation is at chance and that of training far above, or where the inputs of
    validation are measurably others. An overfitted model differs: its validation did improve first.

    ## Why it matters
    What is learned does not carry over at all. That is rarely a matter of regularisation: the two
    sets are prepared in different ways, or labels of one of them do not belong to their inputs.
    Every decision taken by this validation is worthless.

    ## What to do
    Take one sample through both pipelines and compare what arrives at the model: scaling, order
    of channels, tokenizer, order of classes. Look at ten validation samples with their labels. See
    that shuffling moves inputs and labels together.

    ## When it is wrong
    Tasks in which nothing carries over, such as random labels or pure noise. A validation loss with
    other class weights than training, or with classes in other proportions, has another constant
    level.

    ## How to confirm
    - Validate on a part of the training set through the validation code: it has to come close to
      the training loss.
    - Train for a few epochs on the validation set: if it cannot be learned either, its labels are
      wrong.
    """
    found = facts.validation
    if isinstance(found, str):
        yield validation_mismatch.not_examined(found)
    elif len(found) < min_passes:
        yield validation_mismatch.not_examined(
            f"{len(found)} of the {min_passes} validation passes needed"
        )
    elif found.constant is None:
        yield validation_mismatch.not_examined(
            "the loss of a constant prediction is not known for this loss function"
        )
    else:
        yield _judge(facts, found, found.constant, learned, beaten)


def _judge(facts: Facts, found: Curves, constant: float, learned: float, beaten: float) -> Verdict:
    lowest = float(smooth(found.validation).min())
    third = max(len(found) // 3, 1)
    first, last = midmean(found.validation[:third]), midmean(found.validation[-third:])
    trained = midmean(found.training[-third:])
    at_chance = _is_at_chance(facts, found)
    fitted = fitted_accuracy(facts, found)
    odds = chance(facts, found.function)
    if lowest < beaten * constant:
        return validation_mismatch.clear(
            f"the validation loss got down to {lowest:.4g}; a constant prediction has"
            f" {constant:.4g}"
        )
    if at_chance is False:
        return validation_mismatch.clear(
            f"the accuracy of validation is {_late_accuracy(found):.1%}; always the most frequent"
            f" class would be {odds:.1%}"
        )
    is_fitted = fitted is not None and odds is not None and fitted > odds + 0.3 * (1 - odds)
    # What gets worse than a constant prediction needs less of a gap.
    worsens = last > constant / beaten and rise_score(found.validation) > _TREND
    if not is_fitted and not (
        found.is_comparable and trained < (beaten if worsens else learned) * constant
    ):
        return validation_mismatch.clear(
            f"training is no better either: {trained:.4g}; a constant prediction has {constant:.4g}"
        )
    if last < beaten * first:
        return validation_mismatch.clear(
            f"the validation loss improves: {first:.4g} at first, {last:.4g} at last"
        )
    other_inputs = has_other_inputs(facts)
    if at_chance is None and not other_inputs and lowest > _ANOTHER_SCALE * constant:
        return validation_mismatch.not_examined(
            f"the validation loss ({lowest:.4g}) is that far from a constant prediction"
            f" ({constant:.4g}) that it may be on another scale"
        )
    step = int(found.steps[0])
    return validation_mismatch.finding(
        f"validation never beats a constant prediction ({constant:.4g}): {first:.4g} at first,"
        f" {last:.4g} at last, never under {lowest:.4g}, while training gets to {trained:.4g}",
        confidence=Confidence.LIKELY
        if other_inputs or (at_chance and is_fitted)
        else Confidence.HINT,
        onset=step,
        evidence=(
            Evidence(
                VAL_LOSS,
                found.span,
                f"lowest of {len(found)} passes {lowest:.4g}; a constant prediction has"
                f" {constant:.4g}",
                found.function,
            ),
            Evidence(
                LOSS, found.span, f"level before the last passes {trained:.4g}", found.trained
            ),
            *_accuracy_evidence(found, fitted, odds),
        ),
        fix="take one sample through both pipelines and compare what the model is given; then look"
        " whether validation labels belong to their inputs",
    )


def _is_at_chance(facts: Facts, found: Curves) -> bool | None:
    """Whether validation is no more often right than the most frequent class; None if unknown."""
    odds = chance(facts, found.function)
    if odds is None or not np.isfinite(found.accuracy).any():
        return None
    return _late_accuracy(found) < odds + 0.1 * (1 - odds)


def _late_accuracy(found: Curves) -> float:
    known = found.accuracy[np.isfinite(found.accuracy)]
    return float(known[-max(len(known) // 3, 1) :].mean())


def _accuracy_evidence(
    found: Curves, fitted: float | None, odds: float | None
) -> Iterator[Evidence]:
    if odds is None or not np.isfinite(found.accuracy).any():
        return
    yield Evidence(
        VAL_ACCURACY,
        found.span,
        f"{_late_accuracy(found):.1%} at last; always the most frequent class: {odds:.1%}",
        found.function,
    )
    if fitted is not None:
        yield Evidence(ACCURACY, found.span, f"at least {fitted:.1%} in training", found.function)
