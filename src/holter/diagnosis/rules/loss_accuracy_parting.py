"""The training loss falls while the accuracy does not change."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.metrics import calibration
from holter.diagnosis.facts.robust import Values, midmean
from holter.diagnosis.facts.validation import Curves, chance, rise_score, scatter, smooth
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ACCURACY, LOSS, VAL_ACCURACY, VAL_LOSS

_RISE = 0.05  # relative rise of the validation loss that is worth a note
_NOISES = 3  # times the calibration error that chance explains
_POINT = 0.01  # fall of the validation accuracy that is not


@rule(
    severity=Severity.INFO,
    level=Level.DATA,
    needs=(LOSS, ACCURACY),
    preview=True,
)
def loss_accuracy_parting(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps with both a loss and an accuracy"] = 60,
    min_fall: Annotated[float, "fall of the loss from each third to the next, as a share"] = 0.2,
    max_change: Annotated[float, "largest change of the accuracy"] = 0.01,
    max_accuracy: Annotated[float, "accuracy above which there is little room"] = 0.9,
) -> Iterator[Verdict]:
    """The training loss falls while the accuracy does not change.

    ## What it does
    Splits the readings into thirds. It gives a hint if the loss falls from each third to the next
    while the accuracy on the same training batches is constant and has room to rise. A validation
    loss that rises while its accuracy does not fall is noted as normal: calibration.

    ## Why it matters
    The accuracy depends only on the top class, the loss also on the confidence. Without more
    correct predictions, the loss falls through another term (a penalty, an auxiliary task), a few
    samples with huge losses, or shrinking logits: not by learning the task.

    ## Example
    ```python
    loss = cross_entropy(logits, labels) + 10 * penalty(model)     # bad
    loss = cross_entropy(logits, labels) + 0.01 * penalty(model)   # good
    ```

    ## What to do
    Log the terms of the loss separately. If the classification term does not fall, increase its
    weight, and check that labels belong to their inputs. If it falls, look at the samples with the
    largest losses.

    ## When it is wrong
    Rare events: a good detector may rank them well but never predict one at a threshold of 0.5.
    Early phases in which the model first learns its confidence.

    ## How to confirm
    - Train on the classification term alone: if it does not fall, the accuracy cannot rise.
    - Print the ten largest per-sample losses, at the start and now.
    """
    yield from _notes(facts)
    losses = [loss for loss in facts.run[LOSS].values() if len(loss)]
    accuracies = {owner: series for owner, series in facts.run[ACCURACY].items() if len(series)}
    if len(losses) != 1 or len(accuracies) != 1:
        yield loss_accuracy_parting.not_examined(
            f"{len(losses)} losses and {len(accuracies)} accuracies: one of each is needed"
        )
        return
    ((owner, series),) = accuracies.items()
    steps, of_loss, of_accuracy = np.intersect1d(losses[0].steps, series.steps, return_indices=True)
    loss = losses[0].values[of_loss].astype(np.float64)
    accuracy = series.values[of_accuracy].astype(np.float64)
    kept = np.isfinite(loss) & np.isfinite(accuracy)
    if kept.sum() < min_steps:
        yield loss_accuracy_parting.not_examined(
            f"{int(kept.sum())} of the {min_steps} readings of the accuracy needed"
        )
        return
    if loss[kept].min() < 0:
        yield loss_accuracy_parting.not_examined("the loss is negative, so it has no scale")
        return
    thirds = _Thirds.of(loss[kept], accuracy[kept])
    if (
        not thirds.falls(min_fall)
        or thirds.change > max(max_change, 2 * thirds.error)
        or thirds.accuracy[2] > max_accuracy
    ):
        yield loss_accuracy_parting.clear(str(thirds))
    elif thirds.error > max_change:
        yield loss_accuracy_parting.not_examined(
            f"{thirds}, with a standard error of {thirds.error:.1%}"
        )
    else:
        yield _finding(thirds, owner, (int(steps[kept][0]), int(steps[kept][-1])))


@dataclass(frozen=True, slots=True)
class _Thirds:
    """Loss and accuracy in each third of the readings."""

    loss: list[float]
    accuracy: list[float]
    error: float  # standard error of the change of the accuracy

    @classmethod
    def of(cls, loss: Values, accuracy: Values) -> "_Thirds":
        """Cut both into thirds."""
        parts = np.array_split(accuracy, 3)
        return cls(
            [midmean(part) for part in np.array_split(loss, 3)],
            [float(part.mean()) for part in parts],
            float(np.sqrt(sum(part.var() / len(part) for part in parts[::2]))),
        )

    @property
    def change(self) -> float:
        """The largest difference between the accuracies of two thirds."""
        return max(self.accuracy) - min(self.accuracy)

    def falls(self, share: float) -> bool:
        """Return whether the loss falls by this share from each third to the next."""
        first, second, third = self.loss
        return second < (1 - share) * first and third < (1 - share) * second

    def __str__(self) -> str:
        return (
            f"loss {self.loss[0]:.3g} → {self.loss[2]:.3g}, accuracy {self.accuracy[0]:.1%} →"
            f" {self.accuracy[2]:.1%}"
        )


def _finding(thirds: _Thirds, owner: str, span: tuple[int, int]) -> Verdict:
    losses = ", ".join(f"{loss:.3g}" for loss in thirds.loss)
    accuracies = ", ".join(f"{accuracy:.1%}" for accuracy in thirds.accuracy)
    return loss_accuracy_parting.finding(
        f"the loss falls without more correct predictions: {thirds}",
        confidence=Confidence.HINT,
        onset=span[0] + (span[1] - span[0]) // 3,
        evidence=(
            Evidence(
                ACCURACY,
                span,
                f"{accuracies} in thirds of the run (standard error {thirds.error:.1%})",
                owner,
            ),
            Evidence(LOSS, span, f"{losses} in thirds of the run"),
        ),
        fix="log the terms of the loss separately, and check whether the classification term falls",
    )


def _notes(facts: Facts) -> Iterator[Verdict]:
    """Note a validation loss that rises while its accuracy does not fall: it looks like a fault."""
    curves = facts.validation if VAL_LOSS in facts.run and VAL_ACCURACY in facts.run else ""
    if isinstance(curves, str) or len(curves) < 6 or not np.isfinite(curves.accuracy).all():
        return
    rise, odds = _rise(curves), chance(facts, curves.function)
    learned = odds is None or curves.accuracy[-3:].mean() > odds + 0.2 * (1 - odds)
    if rise is None or rise.accuracy < -_POINT or not learned:
        return
    points = f"{rise.accuracy * 100:+.1f} points"
    error = _overconfidence(facts)
    window = (rise.since, curves.span[1])
    yield loss_accuracy_parting.normal(
        f"since step {rise.since} the validation loss rises ({rise.low:.3g} → {rise.late:.3g}) and"
        f" its accuracy does not fall ({points}): the model gets more confident, not worse"
        f" (calibration{error})",
        (
            Evidence(
                VAL_LOSS,
                window,
                f"{rise.low:.3g} at its lowest, {rise.late:.3g} at the end",
                curves.owner,
            ),
            Evidence(VAL_ACCURACY, window, f"{points} in the same time", curves.owner),
        ),
    )


def _overconfidence(facts: Facts) -> str:
    """Return how far the confidence of the last pass is above its accuracy; empty if unknown."""
    measured = facts.measured_validation
    if isinstance(measured, str) or measured.last.classes is None:
        return ""
    found = calibration(measured.last.classes.reliability)
    if found is None or found.overconfidence <= 0 or found.error <= _NOISES * found.noise:
        return ""
    return (
        f" error {percent(found.error)}, {percent(found.noise)} for a calibrated model: divide the"
        " logits by a temperature above 1"
    )


@dataclass(frozen=True, slots=True)
class _Divergence:
    """How validation changed since its lowest loss."""

    since: int
    low: float
    late: float
    accuracy: float  # change since then


def _rise(curves: Curves) -> _Divergence | None:
    """Return how the validation loss rose since its minimum, or None if it did not."""
    smoothed = smooth(curves.validation)
    at = int(smoothed.argmin())
    last = max(3, (len(curves) - 1 - at) // 2)
    low, late = float(smoothed[at]), midmean(curves.validation[-last:])
    risen = late - low > max(_RISE * low, 3 * scatter(curves.validation))
    if not risen or len(curves) - 1 - at < 3 or rise_score(curves.validation[at:]) < 2:
        return None
    change = float(curves.accuracy[-last:].mean() - curves.accuracy[at : at + 3].mean())
    return _Divergence(int(curves.steps[at]), low, late, change)
