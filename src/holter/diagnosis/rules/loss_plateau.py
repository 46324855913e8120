"""The loss fell at first and has stood still since, though little was learned."""

import itertools
from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import learned
from holter.diagnosis.facts.curve import (
    Curve,
    Settled,
    rate_left,
    settled,
    warmed_up,
)
from holter.diagnosis.facts.progress import recent
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LR, UPDATE_RATIO

_STAIR = 12  # steps that an epoch with a tread has at least
_FELL = 0.1  # share of the first loss by which it must have fallen
_DECAYED = 0.1  # of its peak: a learning rate under this holds the loss by itself


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS,),
    symptom=True,
)
def loss_plateau(
    facts: Facts, *, min_steps: int = 100, min_share: float = 0.5, min_learned: float = 0.1
) -> Iterator[Verdict]:
    """The loss fell at first and has stood still since, though little was learned.

    ## What it does
    Looks for the longest end of the curve that is level but for noise. It is a plateau if it
    takes at least `min_share` of at least `min_steps` losses, the loss had fallen by a tenth
    before, and the learning rate has not decayed to a tenth of its peak. Most healthy runs end
    like that, so it is a finding only where the level is known to be poor: less than `min_learned`
    of the loss of a constant answer is gone, and, where accuracy is recorded, no more of the errors
    of always answering the most frequent class. Otherwise it is noted as normal.

    ## Why it matters
    The first drop was scale and class frequencies, not the task. Steps since then were wasted,
    though weights still move.

    ## What to do
    If another finding explains it, mend that. Otherwise try the learning rate ten times lower and
    ten times higher for as many steps as the first drop took; if neither moves the loss, look at
    the inputs and labels, and at the size of the model.

    ## When it is wrong
    Tasks in which little can be predicted (markets, clicks, next words of noise): 10 % may be all
    there is. Tasks with a long plateau before a second drop. Losses that do not go through a loss
    function of `torch.nn.functional` are never a finding here, as their floor is unknown.

    ## How to confirm
    - Train on one single batch from where it stands: if that loss falls, model and loop are sound
      and the data or the learning rate hold the plateau.
    - Go on from the last checkpoint for 100 steps with a tenth of the learning rate: a loss that
      falls at once was held up by steps that are too large.
    """
    curve = facts.curve
    if isinstance(curve, str):
        yield loss_plateau.not_examined(curve)
        return
    if len(curve) < min_steps:
        yield loss_plateau.not_examined(f"{len(curve)} of the {min_steps} losses needed")
        return
    if warmed_up(facts, curve) is None:
        yield loss_plateau.not_examined("the learning rate is still warming up")
        return
    yield from _staircase(facts, curve)
    first = midmean(curve.values[: max(len(curve) // 50, 3)])
    end = settled(curve)
    if end is None or end.share < min_share:
        yield loss_plateau.clear(
            "the loss still moves in the last half"
            if end is None
            else f"the loss moved until step {end.since}, {1 - end.share:.0%} of the steps"
        )
    elif first - end.level < _FELL * abs(first):
        yield loss_plateau.clear(
            f"there was no drop before the level: {first:.4g} at first, {end.level:.4g} at last"
        )
    else:
        yield from _judge(facts, curve, first, end, min_learned)


def _staircase(facts: Facts, curve: Curve) -> Iterator[Verdict]:
    """A note on a loss that falls at the edges of epochs and is level in between."""
    epoch = facts.epoch_steps
    if epoch is None or epoch < _STAIR or curve.span[1] < 4 * epoch:
        return
    treads: list[tuple[float, float]] = []  # of each epoch: the level of its first third, and last
    for start in range(0, curve.span[1] - epoch + 2, epoch):
        thirds = [
            curve.values[(curve.steps >= start + low) & (curve.steps < start + high)]
            for low, high in ((0, epoch // 3), (epoch - epoch // 3, epoch))
        ]
        if min(len(each) for each in thirds) < 3:
            return
        treads.append((midmean(thirds[0]), midmean(thirds[1])))
    within = np.array([first - last for first, last in treads[1:]])
    edges = np.array([last - first for (_, last), (first, _) in itertools.pairwise(treads)][1:])
    fall = treads[1][0] - treads[-1][1]
    if len(edges) < 2 or edges.min() <= 0 or fall <= 0.05 * abs(treads[1][0]):
        return
    if edges.sum() > 2 * abs(within.sum()):
        yield loss_plateau.normal(
            f"the loss falls in stairs, by {np.median(edges):.2g} at each edge between epochs of"
            f" {epoch} steps and by {np.median(within):.2g} inside of one: samples come again and"
            " are remembered; no fault, but watch the validation loss",
            (Evidence(LOSS, curve.span, f"{len(edges)} stairs", curve.owner),),
        )


def _judge(
    facts: Facts, curve: Curve, first: float, end: Settled, min_learned: float
) -> Iterator[Verdict]:
    went = (
        f"the loss fell from {first:.4g} to {end.level:.4g} and has been level since step"
        f" {end.since}"
    )
    left = rate_left(facts, curve)
    found = facts.baseline
    if left is not None and left < _DECAYED:
        yield loss_plateau.clear(
            f"the learning rate has decayed to {left:.1%} of its peak, which by itself holds the"
            f" loss at {end.level:.4g}"
        )
        return
    if isinstance(found, str):
        yield loss_plateau.normal(f"{went}: so do most runs that have learned what they can")
        yield loss_plateau.clear(f"{end.level / first:.0%} of the first loss is left")
        return
    known = learned(facts, found, end.level)
    if known.most >= min_learned:
        yield loss_plateau.normal(f"{went}: so do most runs that have learned what they can")
        yield loss_plateau.clear(str(known))
        return
    window = (end.since, curve.span[1])
    yield loss_plateau.finding(
        f"{went}, for {end.share:.0%} of the steps, with little learned: {known}",
        confidence=Confidence.HINT,
        onset=end.since,
        evidence=(
            Evidence(LOSS, curve.span, f"{end.level:.4g} ± {end.error:.1g} at last", curve.owner),
            Evidence(found.signal, window, str(known), found.function),
            *_still_moving(facts, window),
        ),
        fix="try a tenth of the learning rate and ten times it; if neither moves the loss, look at"
        " inputs, labels and the size of the model",
    )


def _still_moving(facts: Facts, window: tuple[int, int]) -> Iterator[Evidence]:
    """That neither the learning rate nor small updates hold the loss."""
    if (update := facts.median_update) is not None:
        yield Evidence(
            UPDATE_RATIO, recent(facts), f"weights change by {update:.1g} a step (median)"
        )
    if LR in facts.run:
        group = next(iter(facts.run[LR]))
        yield Evidence(LR, window, f"{facts.run[LR][group].values[-1]:.2g} at last", group)
