"""The training loss falls and the accuracy does not move."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import Values, midmean
from holter.diagnosis.facts.validation import Curves, chance, rise_score, scatter, smooth
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ACCURACY, LOSS, VAL_ACCURACY, VAL_LOSS

_POINT = 0.01  # of accuracy
_BEST = 0.9  # an accuracy above this has little room
_RISE = 0.05  # of the validation loss, worth a note


@rule(
    severity=Severity.INFO,
    level=Level.DATA,
    needs=(LOSS, ACCURACY),
    preview=True,
)
def loss_accuracy_parting(
    facts: Facts, *, min_steps: int = 60, min_fall: float = 0.2
) -> Iterator[Verdict]:
    """The training loss falls and the accuracy does not move.

    ## What it does
    Compares the thirds of the readings, at least `min_steps` of them. It gives a hint where the
    loss falls by `min_fall` from the first third to the second, and again from the second to the
    last, while the accuracy on the same training batches stays within one point, or within its
    noise if that is small enough, and is under 90 %. Of validation it only makes notes: a loss that
    rises at an accuracy that stays or grows is a matter of confidence, not of being right.

    ## Why it matters
    The accuracy counts which class comes first, the loss also how sure the model is. If the loss
    falls without a single answer changing, it falls by another term (a penalty, an auxiliary task),
    by a few samples with huge losses, or by logits that shrink: not by learning the task.

    ## What to do
    Log the terms of the loss apart. If the one of the labels does not fall, weigh it up, and see
    that labels belong to their inputs. If it does, look at the samples with the largest losses.

    ## When it is wrong
    Rare events: a good detector may rank them well and never call one at a threshold of one half.
    Phases of training in which the model first learns how sure to be.

    ## How to confirm
    - Train on the loss of the labels alone: if it does not fall, the accuracy had no reason to.
    - Print the ten largest losses of single samples, at the beginning and now.
    """
    yield from _notes(facts)
    losses = [loss for loss in facts.run[LOSS].values() if len(loss)]
    accuracies = {owner: each for owner, each in facts.run[ACCURACY].items() if len(each)}
    if len(losses) != 1 or len(accuracies) != 1:
        yield loss_accuracy_parting.not_examined("there is no one loss with one accuracy")
        return
    ((owner, accuracy),) = accuracies.items()
    steps, of_loss, of_accuracy = np.intersect1d(
        losses[0].steps, accuracy.steps, return_indices=True
    )
    values = losses[0].values[of_loss].astype(np.float64)
    right = accuracy.values[of_accuracy].astype(np.float64)
    kept = np.isfinite(values) & np.isfinite(right)
    if kept.sum() < min_steps:
        yield loss_accuracy_parting.not_examined(
            f"{int(kept.sum())} of the {min_steps} readings of the accuracy needed"
        )
    elif values[kept].min() < 0:
        yield loss_accuracy_parting.not_examined("a loss that gets negative has no scale")
    else:
        span = int(steps[kept][0]), int(steps[kept][-1])
        yield _judge(values[kept], right[kept], owner, span, min_fall)


def _judge(
    loss: Values, accuracy: Values, owner: str, span: tuple[int, int], min_fall: float
) -> Verdict:
    levels = [midmean(part) for part in np.array_split(loss, 3)]
    parts = np.array_split(accuracy, 3)
    right = [float(part.mean()) for part in parts]
    error = float(np.sqrt(sum(part.var() / len(part) for part in parts[::2])))
    measured = (
        f"the loss goes from {levels[0]:.4g} to {levels[2]:.4g} and the accuracy from"
        f" {right[0]:.1%} to {right[2]:.1%}"
    )
    moved = max(right) - min(right)
    falls = levels[1] < (1 - min_fall) * levels[0] and levels[2] < (1 - min_fall) * levels[1]
    if not falls or moved > max(_POINT, 2 * error) or right[2] > _BEST:
        return loss_accuracy_parting.clear(measured)
    if error > _POINT:
        return loss_accuracy_parting.not_examined(
            f"{measured}, which is known to {2 * error:.1%} only"
        )
    return loss_accuracy_parting.finding(
        f"{measured}: it falls by something else than right answers",
        confidence=Confidence.HINT,
        onset=span[0] + (span[1] - span[0]) // 3,
        evidence=(
            Evidence(
                ACCURACY,
                span,
                f"{right[0]:.1%}, {right[1]:.1%}, {right[2]:.1%} in thirds of the readings; known"
                f" to {2 * error:.1%}",
                owner,
            ),
            Evidence(
                LOSS,
                span,
                f"{levels[0]:.4g}, {levels[1]:.4g}, {levels[2]:.4g}",
            ),
        ),
        fix="log the terms of the loss apart, and see whether that of the labels falls",
    )


def _notes(facts: Facts) -> Iterator[Verdict]:
    """What validation shows that looks odd and is normal."""
    found = facts.validation if VAL_LOSS in facts.run and VAL_ACCURACY in facts.run else ""
    if isinstance(found, str) or len(found) < 6 or not np.isfinite(found.accuracy).all():
        return
    way, odds = _way(found), chance(facts, found.function)
    learned = odds is None or found.accuracy[-3:].mean() > odds + 0.2 * (1 - odds)
    if way is None or way.accuracy < -_POINT or not learned:
        return
    evidence = (
        Evidence(
            VAL_LOSS,
            (way.since, found.span[1]),
            f"{way.low:.4g} at its lowest, {way.late:.4g} at last",
            found.function,
        ),
        Evidence(
            VAL_ACCURACY,
            (way.since, found.span[1]),
            f"{way.accuracy * 100:+.1f} points in the same time",
            found.function,
        ),
    )
    yield loss_accuracy_parting.normal(
        f"since step {way.since} the validation loss rises ({way.low:.4g} to {way.late:.4g}) and"
        f" its accuracy does not fall ({way.accuracy * 100:+.1f} points): the model gets surer, not"
        " worse; calibration, not ranking",
        evidence,
    )


@dataclass(frozen=True, slots=True)
class _Way:
    since: int
    low: float
    late: float
    accuracy: float  # change since then


def _way(found: Curves) -> _Way | None:
    """How loss and accuracy of validation went since the lowest loss; None if it did not rise."""
    at = int(smooth(found.validation).argmin())
    last = max(3, (len(found) - 1 - at) // 2)
    low, late = float(smooth(found.validation)[at]), midmean(found.validation[-last:])
    risen = late - low > max(_RISE * low, 3 * scatter(found.validation))
    if not risen or len(found) - 1 - at < 3 or rise_score(found.validation[at:]) < 2:
        return None
    around = found.accuracy[at : at + 3]
    change = float(found.accuracy[-last:].mean() - around.mean())
    return _Way(int(found.steps[at]), low, late, change)
