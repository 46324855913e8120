"""The model is given inputs on another scale in validation than in training."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.validation import FAR_RATIO, FAR_SHIFT, inputs
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    INPUT_MEAN,
    INPUT_STD,
    LOSS,
    VAL_INPUT_MEAN,
    VAL_INPUT_STD,
    VAL_LOSS,
)

_WORSE = 2.0  # validation loss over training loss that counts as much worse


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(INPUT_MEAN, INPUT_STD, VAL_INPUT_MEAN, VAL_INPUT_STD),
)
def mismatched_validation_inputs(
    facts: Facts, *, max_ratio: float = FAR_RATIO, max_shift: float = FAR_SHIFT
) -> Iterator[Verdict]:
    """The model is given inputs on another scale in validation than in training.

    ## What it does
    Compares mean and standard deviation of what the model is called with, in the second half of
    training and of the validation passes. It speaks where the standard deviations differ by a
    factor of `max_ratio`, or the means by `max_shift` standard deviations, and by far more than
    batches of training differ from one another. It is likely, and no hint, if the validation loss
    is also twice the training loss or worse than a constant prediction.

    ## Why it matters
    A model knows the inputs it was trained on. Given others, as when only one of two pipelines
    normalises, its validation loss says nothing of what it has learned, and neither will its
    results in use.

    ## What to do
    Use one function for both pipelines, with constants that were fitted on the training set once.
    Usual culprits: pixels of 0 to 255 beside 0 to 1, a normalisation that is applied twice or in
    one of them only, statistics computed on the validation set.

    ## When it is wrong
    A validation set from another domain, by design. Augmentation that changes the scale a lot, or
    inputs that are mostly padding in one of the sets. Only the first floating-point tensor that the
    model is called with is seen.

    ## How to confirm
    - Print mean and standard deviation of one batch of each loader right before the model.
    - Run a training sample through the validation pipeline and compare the two tensors.
    """
    for owner in facts.run[VAL_INPUT_MEAN]:
        found = inputs(facts, owner)
        if found is None:
            yield mismatched_validation_inputs.not_examined(
                f"too few readings of the inputs{of(owner)}, or inputs that never vary"
            )
            continue
        measured = (
            f"inputs{of(owner)}: {found.mean:.3g} ± {found.std:.3g} in training,"
            f" {found.validation_mean:.3g} ± {found.validation_std:.3g} in validation"
        )
        if not found.differ(max_ratio, max_shift):
            yield mismatched_validation_inputs.clear(measured)
            continue
        validation, training = facts.run[VAL_INPUT_STD][owner], facts.run[INPUT_STD][owner]
        worse = _worse(facts)
        yield mismatched_validation_inputs.finding(
            f"{measured}: a factor of {found.ratio:.3g} in scale, {found.shift:.2g} standard"
            " deviations apart",
            confidence=Confidence.LIKELY if worse else Confidence.HINT,
            onset=validation.first,
            evidence=(
                Evidence(
                    VAL_INPUT_STD,
                    (validation.first, validation.last),
                    f"{found.validation_std:.3g}; {found.std_score:.0f} times as far from training"
                    " as its batches are from one another",
                    owner,
                ),
                Evidence(
                    INPUT_STD,
                    (training.first, training.last),
                    f"{found.std:.3g} in training",
                    owner,
                ),
                Evidence(
                    VAL_INPUT_MEAN,
                    (validation.first, validation.last),
                    f"{found.validation_mean:.3g}, {found.mean:.3g} in training",
                    owner,
                ),
                *worse,
            ),
            fix="prepare validation inputs by the same function and constants as training inputs",
        )


def _worse(facts: Facts) -> tuple[Evidence, ...]:
    """What the losses say, if validation is much worse than training."""
    found = facts.validation if LOSS in facts.run and VAL_LOSS in facts.run else ""
    if isinstance(found, str):
        return ()
    third = max(len(found) // 3, 1)
    validation, training = midmean(found.validation[-third:]), midmean(found.training[-third:])
    unlearned = found.constant is not None and validation > found.constant > training
    if not unlearned and not (found.is_comparable and validation > _WORSE * training):
        return ()
    says = f"{validation:.4g} at last; {training:.4g} in training"
    return (Evidence(VAL_LOSS, found.span, says, found.function),)
