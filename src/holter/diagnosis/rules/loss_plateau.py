"""The loss fell initially and then plateaued with little learned."""

import itertools
from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import Baseline, Learned, learned
from holter.diagnosis.facts.curve import Curve, Settled, settled, warmed_up
from holter.diagnosis.facts.progress import recent
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LR, UPDATE_RATIO

_STAIR = 12  # fewest steps in an epoch that has a tread


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS,),
    symptom=True,
)
def loss_plateau(
    facts: Facts,
    *,
    min_steps: Annotated[int, "losses needed"] = 100,
    min_share: Annotated[float, "share of the steps that the plateau takes"] = 0.5,
    min_fall: Annotated[float, "fall of the loss before the plateau, as a share"] = 0.1,
    min_learned: Annotated[
        float, "share below the best constant prediction at which a plateau is harmless"
    ] = 0.1,
) -> Iterator[Verdict]:
    """The loss fell initially and then plateaued with little learned.

    ## What it does
    Looks for the longest plateau at the end of the curve, after a first drop. Most healthy runs end
    like that, so it is a finding only if both the loss and the accuracy are hardly better than the
    best constant prediction.

    ## Why it matters
    In the first drop the model learned scale and class frequencies, not the task. The steps since
    then were wasted, although weights still change.

    ## Example
    ```python
    model = nn.Linear(10, 4)                                                  # bad
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))     # good
    ```

    ## What to do
    If another finding explains it, fix that. Otherwise try a learning rate 10 times lower and 10
    times higher for as many steps as the first drop took. If neither moves the loss, look at inputs
    and labels, and at the size of the model.

    ## When it is wrong
    Tasks in which little can be predicted (markets, clicks, random text): a gain of a few percent
    may be the maximum. Tasks with a long plateau before a second drop. Losses whose best constant
    prediction is unknown are not examined.

    ## How to confirm
    - Train on one batch from the last checkpoint: if that loss falls, model and loop work, and the
      data or the learning rate cause the plateau.
    - Continue from the last checkpoint for 100 steps with a tenth of the learning rate: if the loss
      falls at once, the steps were too large.
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
            else f"the loss moved until step {end.since}, {percent(1 - end.share)} of the steps"
        )
    elif first - end.level < min_fall * abs(first):
        yield loss_plateau.clear(
            f"no drop before the plateau: {first:.3g} initially, {end.level:.3g} at the end"
        )
    else:
        yield _judge(facts, curve, first, end, min_learned)


def _staircase(facts: Facts, curve: Curve) -> Iterator[Verdict]:
    """Note a loss that falls at the edges of epochs and is level in between."""
    epoch = facts.epoch_steps
    if epoch is None or epoch < _STAIR or curve.span[1] < 4 * epoch:
        return
    treads: list[tuple[float, float]] = []  # of each epoch: the level of its first and last third
    for start in range(0, curve.span[1] - epoch + 2, epoch):
        thirds = [
            curve.values[(curve.steps >= start + low) & (curve.steps < start + high)]
            for low, high in ((0, epoch // 3), (epoch - epoch // 3, epoch))
        ]
        if min(len(third) for third in thirds) < 3:
            return
        treads.append((midmean(thirds[0]), midmean(thirds[1])))
    within = np.array([first - last for first, last in treads[1:]])
    edges = np.array([last - first for (_, last), (first, _) in itertools.pairwise(treads)][1:])
    fall = treads[1][0] - treads[-1][1]
    if len(edges) < 2 or edges.min() <= 0 or fall <= 0.05 * abs(treads[1][0]):
        return
    if edges.sum() > 2 * abs(within.sum()):
        yield loss_plateau.normal(
            f"the loss falls in steps, by {np.median(edges):.2g} at each epoch boundary (every"
            f" {epoch} steps) and by {np.median(within):.2g} within an epoch: samples repeat and"
            " are memorised; not an error, but watch the validation loss",
            (Evidence(LOSS, curve.span, f"{len(edges)} steps down", curve.owner),),
        )


def _judge(facts: Facts, curve: Curve, first: float, end: Settled, min_learned: float) -> Verdict:
    plateau = (
        f"the loss fell from {first:.3g} to {end.level:.3g} and has been level since step"
        f" {end.since}"
    )
    baseline = facts.baseline
    if isinstance(baseline, str):
        return loss_plateau.not_examined(f"{plateau}; {baseline}")
    progress = learned(facts, baseline, end.level)
    if progress.most >= min_learned:
        return loss_plateau.harmless(f"{plateau}; {progress}")
    return loss_plateau.finding(
        f"{plateau}, {percent(end.share)} of the steps; {progress}",
        confidence=Confidence.HINT,
        onset=end.since,
        evidence=_evidence(facts, curve, end, baseline, progress),
        fix="try a tenth of the learning rate and 10 times it; if neither moves the loss, look at"
        " inputs, labels and the size of the model",
    )


def _evidence(
    facts: Facts, curve: Curve, end: Settled, baseline: Baseline, progress: Learned
) -> Iterator[Evidence]:
    window = (end.since, curve.span[1])
    yield Evidence(LOSS, curve.span, f"{end.level:.3g} ± {end.error:.1g} at the end", curve.owner)
    yield Evidence(baseline.signal, window, str(progress), baseline.function)
    if (update := facts.median_update) is not None:
        yield Evidence(UPDATE_RATIO, recent(facts), f"median relative update {update:.1g} per step")
    if LR in facts.run:
        group = next(iter(facts.run[LR]))
        yield Evidence(LR, window, f"{facts.run[LR][group].values[-1]:.2g} at the end", group)
