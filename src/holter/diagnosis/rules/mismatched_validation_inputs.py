"""Validation inputs are on a different scale than training inputs."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import measured as measured_of
from holter.diagnosis.facts.data_sets import series
from holter.diagnosis.facts.validation import training_accuracy
from holter.diagnosis.facts.validation_inputs import (
    FAR_RATIO,
    FAR_SCORE,
    FAR_SHIFT,
    NEAR_RATIO,
    NEAR_SCORE,
    NEAR_SHIFT,
    Inputs,
    inputs,
)
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of, percent
from holter.record.findings import Clear, Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import (
    DATASET_COLUMN_ORIGIN,
    DATASET_OWN_SCALE,
    INPUT_MEAN,
    INPUT_STD,
    LOSS,
    VAL_ACCURACY,
    VAL_INPUT_MEAN,
    VAL_INPUT_STD,
    VAL_LOSS,
)


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(INPUT_MEAN, INPUT_STD, VAL_INPUT_MEAN, VAL_INPUT_STD),
)
def mismatched_validation_inputs(
    facts: Facts,
    *,
    max_ratio: Annotated[float, "factor between the standard deviations"] = FAR_RATIO,
    max_shift: Annotated[float, "distance of the means in standard deviations"] = FAR_SHIFT,
    min_score: Annotated[float, "both in standard deviations between batches"] = FAR_SCORE,
    min_worse: Annotated[float, "validation loss over training loss that is likely"] = 2.0,
    near_ratio: Annotated[float, "factor that counts beside a bad validation"] = NEAR_RATIO,
    near_shift: Annotated[float, "the same, in the smaller standard deviation"] = NEAR_SHIFT,
    near_score: Annotated[float, "the same, between batches"] = NEAR_SCORE,
    min_gap: Annotated[float, "accuracy by which validation is bad"] = 0.2,
) -> Iterator[Verdict]:
    """Validation inputs are on a different scale than training inputs.

    ## What it does
    Compares mean and standard deviation of the model's inputs in the second half of training with
    those of the validation passes. It reports differences far larger than those between training
    batches, unless the validation loss is low nevertheless, and columns or channels in a different
    order. If validation is far worse than training, it also reports smaller differences, and data
    sets that are each standardised by their own statistics.

    ## Why it matters
    A model only works on inputs like those it was trained on. If only one of two pipelines
    normalises, the validation loss does not measure what was learned, and inference may fail in the
    same way.

    ## Example
    ```python
    valid_set = Images(files, transform=ToTensor())                           # bad
    valid_set = Images(files, transform=Compose([ToTensor(), normalize]))     # good
    ```

    ## What to do
    Use one function for both pipelines, with constants fitted on the training set once. Common
    mistakes: pixels from 0 to 255 in one and 0 to 1 in the other, a normalisation applied twice or
    only once, statistics computed on the validation set.

    ## When it is wrong
    A validation set from a different domain, by design. Augmentation that changes the scale a lot,
    or inputs that are mostly padding in one of the sets. Only the first floating-point argument of
    the model is compared.

    ## How to confirm
    - Print mean and standard deviation of one batch of each loader right before the model.
    - Pass a training sample through the validation pipeline and compare the two tensors.
    """
    for owner in facts.run[VAL_INPUT_MEAN]:
        compared = inputs(facts, owner)
        if compared is None:
            yield mismatched_validation_inputs.not_examined(
                f"too few readings of the inputs{of(owner)}, or inputs that never vary"
            )
            continue
        measured = (
            f"inputs{of(owner)}: {compared.mean:.3g} ± {compared.std:.3g} in training,"
            f" {compared.validation_mean:.3g} ± {compared.validation_std:.3g} in validation"
        )
        if not compared.differ(max_ratio, max_shift, min_score):
            carries_over = _carries_over(facts, min_worse) is not None
            worse = _worse(facts, min_worse)
            verdict = _by_columns(facts, measured, worse=worse, carries_over=carries_over)
            apart = compared.are_apart(near_ratio, near_shift, near_score)
            worse = worse or _less_accurate(facts, min_gap)
            if isinstance(verdict, Clear) and any(apart) and worse:
                sure = Confidence.LIKELY if all(apart) else Confidence.HINT
                verdict = _scaled(facts, owner, compared, measured, worse=worse, confidence=sure)
            yield verdict
            continue
        worse = _worse(facts, min_worse)
        if not worse and (carried := _carries_over(facts, min_worse)) is not None:
            yield mismatched_validation_inputs.harmless(f"{measured}, but {carried}")
            continue
        sure = Confidence.LIKELY if worse else Confidence.HINT
        yield _scaled(facts, owner, compared, measured, worse=worse, confidence=sure)


def _scaled(
    facts: Facts,
    owner: str,
    compared: Inputs,
    measured: str,
    *,
    worse: tuple[Evidence, ...],
    confidence: Confidence,
) -> Finding:
    """Report inputs on another scale."""
    validation, training = facts.run[VAL_INPUT_STD][owner], facts.run[INPUT_STD][owner]
    return mismatched_validation_inputs.finding(
        f"{measured} ({compared.ratio:.2g} times the scale, means {compared.shift:.2g} standard"
        " deviations apart)",
        confidence=confidence,
        onset=validation.first,
        evidence=(
            Evidence(
                VAL_INPUT_STD,
                (validation.first, validation.last),
                f"{compared.validation_std:.3g}, {compared.std_score:.3g} standard deviations"
                " between batches from training",
                owner,
            ),
            Evidence(INPUT_STD, (training.first, training.last), f"{compared.std:.3g}", owner),
            Evidence(
                VAL_INPUT_MEAN,
                (validation.first, validation.last),
                f"{compared.validation_mean:.3g}; {compared.mean:.3g} in training",
                owner,
            ),
            *worse,
        ),
        fix="prepare validation inputs with the same function and constants as training inputs",
    )


def _by_columns(
    facts: Facts, measured: str, *, worse: tuple[Evidence, ...], carries_over: bool
) -> Verdict:
    """Judge inputs that are alike as a whole by their columns, and by how they were scaled."""
    origin = series(facts.run, DATASET_COLUMN_ORIGIN, "valid")
    is_moved = origin is not None and (origin.values != np.arange(len(origin))).any()
    if origin is not None and is_moved and not carries_over:
        moved = np.flatnonzero(origin.values != np.arange(len(origin)))
        places = ", ".join(f"{n} is {origin.values[n]:.0f}" for n in moved[:4])
        return mismatched_validation_inputs.finding(
            "columns or channels of validation inputs are in a different order than in training:"
            f" {places}",
            confidence=Confidence.LIKELY if worse else Confidence.HINT,
            onset=0,
            evidence=(
                Evidence(
                    DATASET_COLUMN_ORIGIN,
                    (0, len(origin) - 1),
                    f"{len(moved)} of {len(origin)} have the mean and standard deviation of a"
                    " different column",
                    "valid",
                ),
                *worse,
            ),
            fix="use the same order of columns (or channels, RGB or BGR) in both data sets",
        )
    scales = [measured_of(facts.run, DATASET_OWN_SCALE, split) for split in ("train", "valid")]
    if all(scales) and worse:
        return mismatched_validation_inputs.finding(
            "validation data are standardised by their own mean and standard deviation, not by"
            f" those of the training data ({measured})",
            confidence=Confidence.HINT,
            onset=0,
            evidence=(
                Evidence(
                    DATASET_OWN_SCALE,
                    (0, 0),
                    "columns of the validation data have exactly mean 0 and standard deviation 1",
                    "valid",
                ),
                *worse,
            ),
            fix="compute mean and standard deviation on the training data once, and use them for"
            " both: `x_valid = (x_valid - mean) / std`",
        )
    return mismatched_validation_inputs.clear(measured)


def _carries_over(facts: Facts, min_worse: float) -> str | None:
    """Return that what was learned serves on these inputs as well, if it does."""
    curves = facts.validation if LOSS in facts.run and VAL_LOSS in facts.run else ""
    if isinstance(curves, str) or not curves.is_comparable or curves.constant is None:
        return None
    validation, training = curves.final_validation, curves.final_training
    if validation > min(min_worse * training, curves.constant):
        return None
    return f"the validation loss is {validation:.3g}, the training loss {training:.3g}"


def _worse(facts: Facts, min_worse: float) -> tuple[Evidence, ...]:
    """Return the losses as evidence if validation is much worse than training."""
    curves = facts.validation if LOSS in facts.run and VAL_LOSS in facts.run else ""
    if isinstance(curves, str):
        return ()
    validation, training = curves.final_validation, curves.final_training
    unlearned = curves.constant is not None and validation > curves.constant > training
    if not unlearned and not (curves.is_comparable and validation > min_worse * training):
        return ()
    says = f"{validation:.3g} at the end; {training:.3g} in training"
    return (Evidence(VAL_LOSS, curves.span, says, curves.owner),)


def _less_accurate(facts: Facts, min_gap: float) -> tuple[Evidence, ...]:
    """Return the accuracies as evidence if that of validation is much lower.

    Lower than in training, or than that of the same weights on the held-out rows afterwards.
    """
    curves = facts.validation if LOSS in facts.run and VAL_LOSS in facts.run else ""
    if isinstance(curves, str):
        return ()
    validation = float(np.median(curves.accuracy[-curves.third :]))
    training = training_accuracy(facts, curves.function, int(curves.steps[len(curves) // 2]))
    compared = facts.comparison
    afterwards = compared.scores.network if compared is not None and compared.is_class else None
    for level, where in ((training, "in training"), (afterwards, "when the script had ended")):
        if level is not None and level - validation >= min_gap:
            says = f"{percent(validation)} over the last passes; {percent(level)} {where}"
            return (Evidence(VAL_ACCURACY, curves.span, says, curves.owner),)
    return ()
