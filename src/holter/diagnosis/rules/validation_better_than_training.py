"""Validation is far better than training, which has not got beyond a constant prediction."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.validation import Curves, chance, scatter, training_accuracy
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, MODE_EVAL_FRACTION, VAL_ACCURACY, VAL_LOSS

_MOST = 0.8  # share of the passes that have to agree
_FAR_APART = 0.3  # of what accuracy can gain on chance, that training lacks
_NEAR_CHANCE = 0.25  # share of the errors of the most frequent class that are avoided
_NOTABLE = 1.05  # training loss over validation loss that is worth a note
_STILL = 0.1  # share of the gap that training may still close in a third of the passes


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS, VAL_LOSS),
)
def validation_better_than_training(
    facts: Facts, *, min_passes: int = 4, min_factor: float = 2.0, near: float = 0.7
) -> Iterator[Verdict]:
    """Validation is far better than training, which has not got beyond a constant prediction.

    ## What it does
    Compares the validation loss with the level of the training loss since the pass before, over at
    least `min_passes` passes. That it lies below is normal: dropout and augmentation act in
    training alone, and the training loss is a mean over an epoch in which the model was still
    worse. A hint is given only where the training loss is over `min_factor` times the validation
    loss on most passes, hardly closes that gap any more, and still is over `near` of what a
    constant prediction would have; or where the accuracy of training is near chance and that of
    validation is not, or lacks almost a third of what can be gained on chance.

    ## Why it matters
    Training then fights its own noise: so much is dropped or distorted that hardly any signal is
    left in a step. The model could be far better, as validation shows.

    ## What to do
    Halve the dropout rate, or weaken the augmentation, and see both losses fall. A rate of dropout
    is the share that is dropped: 0.9 keeps a tenth.

    ## When it is wrong
    Training that mixes samples (mixup, CutMix), or that is measured on much harder samples on
    purpose, has a high floor of its own. A validation set that shares samples with training, or
    holds easy ones only, makes such a gap as well.

    ## How to confirm
    - Evaluate training batches in eval mode: if their loss is that of validation, the gap is
      regularisation.
    - Train for a while without dropout and augmentation: the training loss has to drop at once.
    """
    found = facts.validation
    if isinstance(found, str):
        yield validation_better_than_training.not_examined(found)
    elif len(found) < min_passes:
        yield validation_better_than_training.not_examined(
            f"{len(found)} of the {min_passes} validation passes needed"
        )
    elif not found.is_comparable:
        yield validation_better_than_training.not_examined(
            "training optimises another loss than validation measures, or on another scale"
        )
    else:
        yield from _judge(facts, found, min_factor, near)


def _judge(facts: Facts, found: Curves, min_factor: float, near: float) -> Iterator[Verdict]:
    third = max(len(found) // 3, 1)
    gap = (found.training - found.validation)[third:]  # once training is under way
    late, before = midmean(found.training[-third:]), midmean(found.training[-2 * third : -third])
    validation = midmean(found.validation[-third:])
    levels = f"training {late:.4g}, validation {validation:.4g} at last"
    evidence = [
        Evidence(VAL_LOSS, found.span, f"{validation:.4g} at last", found.function),
        Evidence(LOSS, found.span, f"{late:.4g} before the last passes", found.trained),
    ]
    by_accuracy = _by_accuracy(facts, found) if late > validation else []
    by_loss = (
        found.constant is not None
        and (found.training > min_factor * found.validation)[third:].mean() >= _MOST
        and late > near * found.constant
        and before - late < _STILL * np.median(gap)
    )
    if by_loss or by_accuracy:
        yield validation_better_than_training.finding(
            f"training ({late:.4g}) stays far behind validation ({validation:.4g}; a constant"
            f" prediction has {found.constant:.4g}): dropout or augmentation is too strong",
            confidence=Confidence.HINT,
            onset=int(found.steps[third]),
            evidence=[*by_accuracy, *evidence],
            fix="halve the dropout rate, or weaken the augmentation",
        )
        return
    if (
        (gap > 0).mean() >= _MOST
        and np.median(gap) > 2 * scatter(found.validation)
        and late > _NOTABLE * validation
    ):
        acting = "dropout" if _has_modes(facts) else "augmentation, if any,"
        yield validation_better_than_training.normal(
            f"validation is better than training ({levels}): {acting} acts in training alone, and"
            " the training loss is a mean over steps in which the model was still worse",
            evidence,
        )
    yield validation_better_than_training.clear(levels)


def _by_accuracy(facts: Facts, found: Curves) -> list[Evidence]:
    """What accuracies say, if training is near chance and validation is not."""
    half = len(found) // 2
    odds = chance(facts, found.function)
    fitted = training_accuracy(facts, found.function, int(found.steps[half]))
    validation = found.accuracy[half:].mean()
    if odds is None or odds >= 1 or fitted is None or found.constant is None:
        return []
    gained, validated = (fitted - odds) / (1 - odds), (validation - odds) / (1 - odds)
    near_chance = gained <= _NEAR_CHANCE and validated > max(_NEAR_CHANCE, 3 * gained)
    if not near_chance and validated - gained < _FAR_APART:
        return []
    says = f"{validation:.1%} over the last passes; {fitted:.1%} in training, chance {odds:.1%}"
    return [Evidence(VAL_ACCURACY, found.span, says, found.function)]


def _has_modes(facts: Facts) -> bool:
    return MODE_EVAL_FRACTION in facts.run and any(
        len(each) for each in facts.run[MODE_EVAL_FRACTION].values()
    )
