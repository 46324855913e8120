"""The validation loss has turned up while the training loss goes on falling."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import Values, midmean
from holter.diagnosis.facts.validation import (
    Curves,
    fitted_accuracy,
    rise_score,
    scatter,
    smooth,
)
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, VAL_ACCURACY, VAL_LOSS

_SURE = 4.0  # standard errors by which the rise exceeds the scatter from pass to pass
_TREND = 2.0  # standard deviations of a trend that chance would give
_VISIBLE = 0.02  # a rise under this share of where the loss began is of no interest
_FALL = 0.05  # share by which the training loss has to fall meanwhile
_FAR_BELOW = 0.5  # training loss over validation loss
_BEATEN = 0.95  # of the constant predictor's loss: above it nothing was learned at all
_POINT = 0.01  # of accuracy
_GAP = 0.2  # between the accuracies of training and validation: learned by heart


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS, VAL_LOSS),
)
def overfitting(facts: Facts, *, min_passes: int = 4, min_rise: float = 0.05) -> Iterator[Verdict]:
    """The validation loss has turned up while the training loss goes on falling.

    ## What it does
    Finds the lowest validation loss, as a running median of three passes, and looks at what
    followed. It speaks where at least `min_passes` passes followed, the last ones lie above the
    lowest by `min_rise` of it and by four standard errors of the scatter from pass to pass, the
    passes between show a rising trend, and the training loss fell by 5 % or more meanwhile. Onset
    is the step of the lowest loss. Where the accuracy of validation is known it has a say: if it
    falls as well the finding is likely. If it stays or grows, the loss rises by confidence alone:
    there is a finding, a hint, only where training is more often right by 20 points. Where it is
    not known, the finding is likely if the loss rose by twice `min_rise` and training is at less
    than half of it, and a hint if one of both holds.

    ## Why it matters
    From the onset on the model learns what is particular to the training samples. What it is worth
    on others gets less, however good the training loss looks.

    ## What to do
    Keep the weights of the onset (early stopping). To get beyond them: more data or augmentation,
    weight decay, dropout, a smaller model, in this order. Look for duplicates among few samples
    first.

    ## When it is wrong
    Some networks improve again after much longer training. A validation set that is drawn from
    elsewhere may get worse for its own reasons. Few validation samples scatter; that makes the rule
    silent, not wrong.

    ## How to confirm
    - Evaluate the weights saved nearest to the onset and the last ones by the metric that counts.
    - Train on half of the data: overfitting begins earlier and goes deeper.
    """
    found = facts.validation
    if isinstance(found, str):
        yield overfitting.not_examined(found)
    elif len(found) < min_passes + 2:
        yield overfitting.not_examined(
            f"{len(found)} of the {min_passes + 2} validation passes needed"
        )
    else:
        yield _judge(facts, found, min_passes, min_rise)


@dataclass(frozen=True, slots=True)
class _Turn:
    """How both losses went from the lowest validation loss to the end."""

    at: int  # index of the pass with the lowest loss
    low: float
    late: float  # level of the last passes
    error: float
    trained_then: float
    trained_late: float
    trained_error: float
    last: int  # how many passes make the late level

    @property
    def rise(self) -> float:
        """As a share of the lowest."""
        return (self.late - self.low) / self.low if self.low > 0 else 0.0


def _judge(facts: Facts, found: Curves, min_passes: int, min_rise: float) -> Verdict:
    turn = _turn(found)
    step = int(found.steps[turn.at])
    after = len(found) - 1 - turn.at
    lowest = f"the validation loss is lowest ({turn.low:.4g}) after step {step}"
    if after < min_passes:
        return overfitting.clear(f"{lowest}, {after} passes before the last")
    began = found.constant or float(smooth(found.validation)[0])
    risen = turn.late - turn.low
    if turn.rise < min_rise or risen < _VISIBLE * began:
        return overfitting.clear(f"{lowest} and {turn.late:.4g} at last ({turn.rise:+.1%})")
    if risen < _SURE * turn.error or rise_score(found.validation[turn.at :]) < _TREND:
        return overfitting.clear(
            f"{lowest}; {turn.late:.4g} at last lies within the scatter from pass to pass"
        )
    fall = turn.trained_then - turn.trained_late
    if fall < max(_FALL * turn.trained_then, 3 * turn.trained_error):
        return overfitting.clear(
            f"the training loss does not fall while the validation loss rises:"
            f" {turn.trained_then:.4g} and {turn.trained_late:.4g}"
        )
    if found.constant is not None and turn.low > _BEATEN * found.constant:
        return overfitting.clear(
            f"the validation loss never was under {turn.low:.4g}, where a constant prediction is"
            f" ({found.constant:.4g}): nothing was learned that could be lost"
        )
    fitted = fitted_accuracy(facts, found)
    confidence = _confidence(found, turn, fitted, turn.rise > 2 * min_rise)
    if confidence is None:
        stays = f", at an accuracy that stays ({said})" if (said := _accuracy(found, turn)) else ""
        return overfitting.clear(f"{lowest} and {turn.late:.4g} at last{stays}")
    return overfitting.finding(
        f"overfitting since step {step}: the validation loss rose from {turn.low:.4g} to"
        f" {turn.late:.4g} ({turn.rise:+.0%}) over {after} passes while the training loss fell"
        f" from {turn.trained_then:.4g} to {turn.trained_late:.4g}",
        confidence=confidence,
        onset=step,
        evidence=(
            Evidence(
                VAL_LOSS,
                found.span,
                f"lowest {turn.low:.4g} after step {step}, {turn.late:.4g} over the last"
                f" {turn.last} passes; a rise of {_SURE * turn.error:.2g} could be chance",
                found.function,
            ),
            Evidence(
                LOSS,
                (step, found.span[1]),
                f"level {turn.trained_then:.4g} then, {turn.trained_late:.4g} at last",
                found.trained,
            ),
            *_accuracy_evidence(found, turn, fitted),
        ),
        fix=f"keep the weights of step {step} (early stopping); then more data or augmentation,"
        " weight decay or dropout",
    )


def _turn(found: Curves) -> _Turn:
    at = int(smooth(found.validation).argmin())
    last = max(3, (len(found) - 1 - at) // 2)
    width = np.sqrt(1 / 3 + 1 / last)
    return _Turn(
        at=at,
        low=float(smooth(found.validation)[at]),
        late=midmean(found.validation[-last:]),
        error=scatter(found.validation) * width,
        trained_then=float(np.median(found.training[at : at + 3])),
        trained_late=midmean(found.training[-last:]),
        trained_error=scatter(found.training) * width,
        last=last,
    )


def _confidence(
    found: Curves, turn: _Turn, fitted: float | None, is_large: bool
) -> Confidence | None:
    """How sure, by what accuracy and training loss say; None where it is not worse at all."""
    levels = _accuracies(found, turn)
    if levels is None:
        gap = found.is_comparable and turn.trained_late < _FAR_BELOW * turn.late
        improved = turn.at > 0 or found.constant is not None
        if gap and improved and is_large:
            return Confidence.LIKELY
        return Confidence.HINT if gap or is_large else None
    best, late, error = levels
    if best - late > max(_POINT, 2 * error):
        return Confidence.LIKELY
    return Confidence.HINT if fitted is not None and fitted - late > _GAP else None


def _accuracies(found: Curves, turn: _Turn) -> tuple[float, float, float] | None:
    """Accuracy at the lowest loss, at last, and the error of their difference."""
    accuracy: Values = found.accuracy
    if not np.isfinite(accuracy).all():
        return None
    around = accuracy[turn.at : turn.at + 3]
    error = scatter(accuracy) * float(np.sqrt(1 / len(around) + 1 / turn.last))
    return float(around.mean()), float(accuracy[-turn.last :].mean()), error


def _accuracy(found: Curves, turn: _Turn) -> str:
    levels = _accuracies(found, turn)
    return "" if levels is None else f"{levels[0]:.1%} then, {levels[1]:.1%} at last"


def _accuracy_evidence(found: Curves, turn: _Turn, fitted: float | None) -> Iterator[Evidence]:
    if said := _accuracy(found, turn):
        training = "" if fitted is None else f"; at least {fitted:.1%} in training"
        yield Evidence(VAL_ACCURACY, found.span, said + training, found.function)
