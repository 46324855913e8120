"""The validation loss rises while the training loss falls."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.validation import (
    Curves,
    enough_passes,
    fitted_accuracy,
    rises,
    scatter,
    smooth,
)
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, VAL_ACCURACY, VAL_LOSS

_FAR_BELOW = 0.5  # training loss over validation loss that supports the finding
_POINT = 0.01  # smallest fall of an accuracy that supports the finding


@dataclass(frozen=True, slots=True)
class _Turn:
    """Both losses from the lowest validation loss to the end."""

    at: int  # index of the pass with the lowest loss
    low: float
    late: float  # level of the last passes
    error: float
    training_then: float
    training_late: float
    training_error: float
    last: int  # passes that make the late level

    @property
    def rise(self) -> float:
        """Rise of the validation loss as a share of its lowest value."""
        return (self.late - self.low) / self.low if self.low > 0 else 0.0


@dataclass(frozen=True, slots=True)
class _Accuracy:
    """Validation accuracy at the lowest loss and at the end."""

    best: float
    late: float
    error: float  # standard error of their difference

    @property
    def fell(self) -> bool:
        return self.best - self.late > max(_POINT, 2 * self.error)

    def __str__(self) -> str:
        return f"{self.best:.0%} then, {self.late:.0%} at the end"


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS, VAL_LOSS),
)
def overfitting(
    facts: Facts,
    *,
    min_passes: Annotated[int, "validation passes needed after the lowest loss"] = 4,
    min_rise: Annotated[float, "smallest rise, as a share of the lowest validation loss"] = 0.05,
    min_share: Annotated[float, "smallest rise, as a share of the initial level"] = 0.02,
    standard_errors: Annotated[float, "between passes that the rise must exceed"] = 4.0,
    min_fall: Annotated[float, "share by which the training loss must fall in that time"] = 0.05,
    max_level: Annotated[float, "lowest loss over that of the best constant prediction"] = 0.95,
    min_gap: Annotated[float, "accuracy in training minus validation that is memorised"] = 0.2,
) -> Iterator[Verdict]:
    """The validation loss rises while the training loss falls.

    ## What it does
    Takes the lowest validation loss, as a running median of three passes, and tests whether the
    passes after it rise beyond their scatter while the training loss falls. The finding is likely
    if the validation accuracy falls as well, or, without accuracies, if the rise is large and the
    training loss is far below. The onset is the step of the lowest loss.

    ## Why it matters
    From the onset on, the model memorises training samples and gets worse on new ones, even if the
    training loss keeps improving.

    ## Example
    ```python
    torch.save(model.state_dict(), "last.pt")                              # bad
    if val_loss < best: torch.save(model.state_dict(), "best.pt")          # good
    ```

    ## What to do
    Keep the weights of the onset (early stopping). To improve further, in this order: more data or
    augmentation, weight decay, dropout, a smaller model. With few samples, look for duplicates
    first.

    ## When it is wrong
    Some networks improve again after much longer training. The loss on a validation set from a
    different source can rise for other reasons. With few validation samples the loss is noisy; the
    rule then reports nothing.

    ## How to confirm
    - Evaluate the checkpoint nearest to the onset and the last one with your main metric.
    - Train on half of the data: overfitting begins earlier and is stronger.
    """
    curves = enough_passes(facts, min_passes + 2)
    if isinstance(curves, str):
        yield overfitting.not_examined(curves)
        return
    turn = _turn(curves)
    step = int(curves.steps[turn.at])
    passes = len(curves) - 1 - turn.at
    rose = turn.late - turn.low
    fell = turn.training_then - turn.training_late
    initial = curves.constant or float(smooth(curves.validation)[0])
    lowest = f"the validation loss is lowest ({turn.low:.3g}) after step {step}"
    measured = f"{lowest} and {turn.late:.3g} at the end ({turn.rise:+.0%})"
    if passes < min_passes:
        yield overfitting.clear(f"{lowest}, {passes} passes before the last")
    elif turn.rise < min_rise:
        yield overfitting.clear(measured)
    elif rose < standard_errors * turn.error or not rises(curves.validation[turn.at :]):
        yield overfitting.clear(f"{measured}, within the scatter between passes")
    elif fell < max(min_fall * turn.training_then, 3 * turn.training_error):
        yield overfitting.clear(
            f"{measured}; the training loss does not fall in that time: {turn.training_then:.3g}"
            f" then, {turn.training_late:.3g} at the end"
        )
    elif curves.constant is not None and turn.low > max_level * curves.constant:
        yield overfitting.clear(
            f"{lowest}, not below the best constant prediction ({curves.constant:.3g}): nothing"
            " was learned that could be lost"
        )
    elif rose < min_share * initial:
        yield overfitting.harmless(f"{measured}, small compared with the initial {initial:.3g}")
    else:
        yield _judge(facts, curves, turn, is_large=turn.rise > 2 * min_rise, min_gap=min_gap)


def _judge(facts: Facts, curves: Curves, turn: _Turn, *, is_large: bool, min_gap: float) -> Verdict:
    """Weigh the rise by what accuracies and the training loss say."""
    accuracy = _accuracy(curves, turn)
    fitted = fitted_accuracy(facts, curves)
    rise = f"the validation loss rose from {turn.low:.3g} to {turn.late:.3g} ({turn.rise:+.0%})"
    if accuracy is None:
        is_far_below = curves.is_comparable and turn.training_late < _FAR_BELOW * turn.late
        improved = turn.at > 0 or curves.constant is not None
        if not is_far_below and not is_large:
            return overfitting.clear(f"{rise}, little; training is at {turn.training_late:.3g}")
        likely = is_far_below and improved and is_large
    else:
        likely = accuracy.fell
        if not likely and (fitted is None or fitted - accuracy.late <= min_gap):
            return overfitting.harmless(f"{rise}, but the accuracy did not fall: {accuracy}")
    step = int(curves.steps[turn.at])
    return overfitting.finding(
        f"{rise} after step {step} while the training loss fell from {turn.training_then:.3g} to"
        f" {turn.training_late:.3g}",
        confidence=Confidence.LIKELY if likely else Confidence.HINT,
        onset=step,
        evidence=(
            Evidence(
                VAL_LOSS,
                curves.span,
                f"lowest {turn.low:.3g} after step {step}, {turn.late:.3g} over the last"
                f" {turn.last} passes (standard error {turn.error:.2g})",
                curves.owner,
            ),
            Evidence(
                LOSS,
                (step, curves.span[1]),
                f"{turn.training_then:.3g} then, {turn.training_late:.3g} at the end",
                curves.trained,
            ),
            *_accuracy_evidence(curves, accuracy, fitted),
        ),
        fix=f"keep the weights of step {step} (early stopping); to improve on them, add data or"
        " augmentation, weight decay or dropout",
    )


def _turn(curves: Curves) -> _Turn:
    smoothed = smooth(curves.validation)
    at = int(smoothed.argmin())
    last = max(3, (len(curves) - 1 - at) // 2)
    width = np.sqrt(1 / 3 + 1 / last)
    return _Turn(
        at=at,
        low=float(smoothed[at]),
        late=midmean(curves.validation[-last:]),
        error=scatter(curves.validation) * width,
        training_then=float(np.median(curves.training[at : at + 3])),
        training_late=midmean(curves.training[-last:]),
        training_error=scatter(curves.training) * width,
        last=last,
    )


def _accuracy(curves: Curves, turn: _Turn) -> _Accuracy | None:
    if not np.isfinite(curves.accuracy).all():
        return None
    around = curves.accuracy[turn.at : turn.at + 3]
    error = scatter(curves.accuracy) * float(np.sqrt(1 / len(around) + 1 / turn.last))
    return _Accuracy(float(around.mean()), float(curves.accuracy[-turn.last :].mean()), error)


def _accuracy_evidence(
    curves: Curves, accuracy: _Accuracy | None, fitted: float | None
) -> Iterator[Evidence]:
    if accuracy is not None:
        training = "" if fitted is None else f"; at least {fitted:.0%} in training"
        yield Evidence(VAL_ACCURACY, curves.span, f"{accuracy}{training}", curves.owner)
