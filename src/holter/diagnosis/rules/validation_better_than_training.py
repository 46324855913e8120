"""The training loss stays near the best constant prediction, far above the validation loss."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.validation import (
    Curves,
    chance,
    enough_passes,
    scatter,
    training_accuracy,
)
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, MODE_EVAL_FRACTION, VAL_ACCURACY, VAL_LOSS

_NOTABLE = 1.05  # training loss over validation loss that is worth a note


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS, VAL_LOSS),
)
def validation_better_than_training(
    facts: Facts,
    *,
    min_passes: Annotated[int, "validation passes needed"] = 4,
    min_factor: Annotated[float, "training loss over validation loss"] = 2.0,
    near: Annotated[float, "training loss over the best constant prediction"] = 0.7,
    min_agreement: Annotated[float, "share of the passes that must agree"] = 0.8,
    max_closing: Annotated[float, "share of the gap that may close in a third of the run"] = 0.1,
    max_gain: Annotated[float, "training accuracy above chance, of what is possible"] = 0.25,
    min_distance: Annotated[float, "validation above training accuracy, on that scale"] = 0.3,
) -> Iterator[Verdict]:
    """The training loss stays near the best constant prediction, far above the validation loss.

    ## What it does
    Compares the validation loss with the training loss since the previous pass. It reports if
    training is far above validation on most passes, no longer closes the gap, and stays near the
    best constant prediction; or if the training accuracy is near chance or far below that of
    validation. A smaller gap is noted as normal: dropout and augmentation act only in training.

    ## Why it matters
    Regularisation removes nearly all of the training signal. As validation shows, the model could
    be far better.

    ## Example
    ```python
    nn.Dropout(0.9)   # bad
    nn.Dropout(0.3)   # good
    ```

    ## What to do
    Halve the dropout rate or weaken the augmentation, and check that both losses fall. The rate of
    `nn.Dropout` is the dropped share: 0.9 keeps a tenth.

    ## When it is wrong
    Training that mixes samples (mixup, CutMix), or uses harder samples on purpose, has a higher
    minimum loss. A validation set that shares samples with training, or contains only easy ones,
    causes the same gap.

    ## How to confirm
    - Evaluate training batches in eval mode: if their loss equals that of validation,
      regularisation causes the gap.
    - Train for a while without dropout and augmentation: the training loss must drop at once.
    """
    curves = enough_passes(facts, min_passes)
    if isinstance(curves, str):
        yield validation_better_than_training.not_examined(curves)
        return
    if not curves.is_comparable:
        yield validation_better_than_training.not_examined(curves.incomparable)
        return
    third = curves.third
    gap = (curves.training - curves.validation)[third:]  # once training is under way
    before = midmean(curves.training[-2 * third : -third])
    late, validation = curves.final_training, curves.final_validation
    levels = f"training {late:.3g}, validation {validation:.3g} at the end"
    evidence = [
        Evidence(VAL_LOSS, curves.span, f"{validation:.3g} at the end", curves.owner),
        Evidence(LOSS, curves.span, f"{late:.3g} before the last passes", curves.trained),
    ]
    by_accuracy = _by_accuracy(facts, curves, max_gain, min_distance) if late > validation else []
    by_loss = (
        curves.constant is not None
        and (curves.training > min_factor * curves.validation)[third:].mean() >= min_agreement
        and late > near * curves.constant
        and before - late < max_closing * np.median(gap)
    )
    if by_loss or by_accuracy:
        yield validation_better_than_training.finding(
            f"the training loss stays at {late:.3g} (best constant prediction"
            f" {curves.constant:.3g}) while the validation loss is {validation:.3g}: dropout or"
            " augmentation is too strong",
            confidence=Confidence.HINT,
            onset=int(curves.steps[third]),
            evidence=[*by_accuracy, *evidence],
            fix="halve the dropout rate, or weaken the augmentation",
        )
        return
    if (
        (gap > 0).mean() >= min_agreement
        and np.median(gap) > 2 * scatter(curves.validation)
        and late > _NOTABLE * validation
    ):
        regularisation = "dropout" if _has_modes(facts) else "augmentation, if any,"
        yield validation_better_than_training.normal(
            f"validation is better than training ({levels}): {regularisation} acts only in"
            " training, and the training loss is averaged over the steps before the pass",
            evidence,
        )
    yield validation_better_than_training.clear(levels)


def _by_accuracy(
    facts: Facts, curves: Curves, max_gain: float, min_distance: float
) -> list[Evidence]:
    """Return the accuracies as evidence if training is near chance, or far below validation."""
    half = len(curves) // 2
    odds = chance(facts, curves.function)
    training = training_accuracy(facts, curves.function, int(curves.steps[half]))
    validation = curves.accuracy[half:].mean()
    if odds is None or odds >= 1 or training is None or curves.constant is None:
        return []
    gain, validation_gain = (training - odds) / (1 - odds), (validation - odds) / (1 - odds)
    near_chance = gain <= max_gain and validation_gain > max(max_gain, 3 * gain)
    if not near_chance and not validation_gain - gain >= min_distance:
        return []
    says = f"{validation:.0%} over the last passes; {training:.0%} in training, chance {odds:.0%}"
    return [Evidence(VAL_ACCURACY, curves.span, says, curves.owner)]


def _has_modes(facts: Facts) -> bool:
    return MODE_EVAL_FRACTION in facts.run and any(
        len(series) for series in facts.run[MODE_EVAL_FRACTION].values()
    )
