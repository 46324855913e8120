"""A column predicts the targets in training but not in validation."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import series
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, portion
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATASET_COLUMN_TRANSFER, LOSS, VAL_LOSS

_NAMED = 4  # columns
_TRIALS = ("train", "valid", "error")


@dataclass(frozen=True, slots=True)
class _Column:
    """What a column predicts of the variance of the targets in both splits."""

    number: int
    train: float
    valid: float
    error: float  # standard error of the difference

    @property
    def lost(self) -> float:
        return self.train - self.valid


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(DATASET_COLUMN_TRANSFER,),
    preview=True,
)
def inconsistent_columns(
    facts: Facts,
    *,
    min_share: Annotated[float, "share of the variance that a column predicts in training"] = 0.05,
    max_kept: Annotated[float, "part of it that is left in validation"] = 0.3,
    standard_errors: Annotated[float, "between both shares"] = 6.0,
    min_worse: Annotated[float, "validation loss over training loss that is damage"] = 1.3,
    max_lost: Annotated[float, "share of several such columns that differ, not the targets"] = 0.5,
) -> Iterator[Verdict]:
    """A column predicts the targets in training but not in validation.

    ## What it does
    Fits the mean target of each value (or bin) of a column on training samples, and predicts
    left-out training samples and validation samples with it. It reports columns that predict the
    former but not the latter, if the validation loss is worse than the training loss. If this is
    the case for most columns, the targets differ.

    ## Why it matters
    The model relies on such a column in training, but for new samples it is uninformative or
    misleading.

    ## Example
    ```python
    valid["city"] = valid["city"].astype("category").cat.codes                       # bad
    valid["city"] = Categorical(valid["city"], categories=train_cities).codes        # good
    ```

    ## What to do
    Fit encoders, scalers and tables of categories on the training samples once and apply them to
    both splits. Compute target means per category without the sample itself (out of fold). Print a
    few raw values next to the model inputs, for both splits.

    ## When it is wrong
    The relation itself changes, for example between years or places. A column that is related to
    the target only through others may lose its share if their distribution changes.

    ## How to confirm
    - Pass one raw sample through both pipelines and compare the columns.
    - Remove the column: the training loss rises, the validation loss falls.
    """
    columns = _columns(facts)
    if not columns:
        yield inconsistent_columns.not_examined("too few samples of both splits were read")
        return
    lost = [
        column
        for column in columns
        if column.train >= min_share
        and column.valid <= max_kept * column.train
        and column.lost > standard_errors * column.error
    ]
    if not lost:
        best = max(columns, key=lambda column: column.train)
        yield inconsistent_columns.clear(
            f"column {best.number} predicts {portion(max(best.train, 0.0))} of the variance of the"
            f" targets in training and {portion(max(best.valid, 0.0))} in validation"
        )
        return
    telling = sum(column.train >= min_share for column in columns)
    if len(lost) > max(max_lost * telling, 1):
        yield inconsistent_columns.clear(
            f"{len(lost)} of the {telling} columns that predict training targets do not predict"
            " validation targets: the targets differ, not a single column"
        )
        return
    lost.sort(key=lambda column: -column.lost)
    worst = lost[0]
    names = ", ".join(str(column.number) for column in lost[:_NAMED])
    which = f"column {names}" if len(lost) == 1 else f"columns {names}"
    measured = (
        f"{which} of the inputs: column {worst.number} alone predicts {percent(worst.train)} of the"
        f" variance of the targets in training and {percent(max(worst.valid, 0.0))} in validation"
    )
    losses = _losses(facts)
    if losses is not None and losses[1] <= min_worse * losses[0]:
        yield inconsistent_columns.harmless(
            f"{measured}, but the validation loss is {losses[1]:.3g} and the training loss"
            f" {losses[0]:.3g}"
        )
        return
    yield inconsistent_columns.finding(
        measured,
        confidence=Confidence.HINT if losses is None else Confidence.LIKELY,
        onset=0,
        evidence=(
            Evidence(
                DATASET_COLUMN_TRANSFER,
                (worst.number, worst.number),
                f"{percent(worst.train)} in training samples that were left out",
                "train",
            ),
            Evidence(
                DATASET_COLUMN_TRANSFER,
                (worst.number, worst.number),
                f"{worst.lost / max(worst.error, 1e-9):.0f} standard errors less in validation",
                "valid",
            ),
            *_loss_evidence(facts, losses),
        ),
        fix="compute the column in the same way for both splits: fit encoders and tables of"
        " categories on training samples once; averages of the target must not include the"
        " sample itself",
    )


def _columns(facts: Facts) -> list[_Column]:
    found = [series(facts.run, DATASET_COLUMN_TRANSFER, each) for each in _TRIALS]
    held = [each.values.tolist() for each in found if each is not None]
    if len(held) < len(_TRIALS) or len({len(each) for each in held}) > 1:
        return []
    return [_Column(n, *values) for n, values in enumerate(zip(*held, strict=True))]


def _losses(facts: Facts) -> tuple[float, float] | None:
    """Return the losses of training and of validation at the end, if they can be compared."""
    curves = facts.validation if LOSS in facts.run and VAL_LOSS in facts.run else ""
    if isinstance(curves, str) or not curves.is_comparable:
        return None
    return curves.final_training, curves.final_validation


def _loss_evidence(facts: Facts, losses: tuple[float, float] | None) -> Iterator[Evidence]:
    curves = facts.validation if losses is not None else ""
    if losses is not None and not isinstance(curves, str):
        says = f"{losses[1]:.3g} at the end; {losses[0]:.3g} in training"
        yield Evidence(VAL_LOSS, curves.span, says, curves.owner)
