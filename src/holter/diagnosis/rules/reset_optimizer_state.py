"""The optimizer forgets its state again and again."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, OPTIMIZER_AGE, WEIGHT_REWRITTEN_FRACTION

_AROUND = 3  # losses before and after a reset
_FEW = 2  # resets of which it is known whether weights were loaded
_MOST = 0.5  # share of them, and of the weights


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(OPTIMIZER_AGE,),
)
def reset_optimizer_state(facts: Facts, *, min_resets: int = 3) -> Iterator[Verdict]:
    """The optimizer forgets its state again and again.

    ## What it does
    Optimizers such as Adam count the steps that their state has seen. Between two readings of one
    optimizer that count has to rise. It speaks where it began anew at least `min_resets` times: it
    fell to no more than the steps since the last reading, or stays at 1. Then the state was thrown
    away, mostly because the optimizer is made anew. A training that begins anew with it, as for the
    next fold of a cross-validation, is told by a loss that returns to where it began; a part of a
    training that is put together of many, as in federated and meta-learning, by weights that were
    loaded in between. Both are normal.

    ## Why it matters
    Adam without its memory makes steps of full length in the direction of a single batch's sign.
    Each reset is a small warm-up without a warm-up, and a schedule that holds the old optimizer
    turns a knob that nobody reads.

    ## What to do
    Make the optimizer once, before the loop over epochs. To change the learning rate, set it in
    `optimizer.param_groups` or use a scheduler.

    ## When it is wrong
    Training in many stages that restarts the optimizer on purpose and goes on with the same
    weights, as with snapshots of a cycle. One or two resets are taken for stages of a training. A
    count that falls back to where it was once, as when a checkpoint is loaded, is no reset.

    ## How to confirm
    - Print `id(optimizer)` once an epoch: it has to stay the same.
    """
    told = False
    for owner, age in facts.run[OPTIMIZER_AGE].items():
        if len(age) < 2:
            continue
        told = True
        at = _resets(age)
        if len(at) < min_resets:
            yield reset_optimizer_state.clear(
                f"the state{of(owner)} has seen {age.values[-1]:.0f} steps and was reset"
                f" {len(at)} times"
            )
            continue
        said = f"the optimizer's state{of(owner)} was thrown away {len(at)} times"
        if _begins_anew(facts, at):
            yield reset_optimizer_state.normal(f"{said}, each time with a loss as at the beginning")
            yield reset_optimizer_state.clear(f"{said}, each time for a training that begins anew")
            continue
        if _loaded(facts, owner, age):
            yield reset_optimizer_state.normal(f"{said}, and weights were loaded each time")
            yield reset_optimizer_state.clear(f"{said}, and weights were loaded each time")
            continue
        every = f", about every {np.median(np.diff(at)):.0f} steps" if len(at) > 1 else ""
        yield reset_optimizer_state.finding(
            f"{said}{every}: it never saw more than {np.nanmax(age.values):.0f} steps of"
            f" {facts.run.steps}",
            confidence=Confidence.CERTAIN,
            onset=int(at[0]),
            evidence=(
                Evidence(
                    OPTIMIZER_AGE,
                    (age.first, age.last),
                    f"its own count of steps began anew at steps"
                    f" {', '.join(str(step) for step in at[:4])}" + (" ..." * (len(at) > 4)),
                    owner,
                ),
            ),
            fix="make the optimizer once, before the loop, and change its learning rate in place",
        )
    if not told:
        yield reset_optimizer_state.not_examined("the optimizer's own count was read only once")


def _resets(age: Series) -> npt.NDArray[np.int64]:
    """The steps at which the count had begun anew since the reading before.

    A count that stands still belongs to a parameter that is no longer trained, unless it is 1.
    """
    rise, count, passed = np.diff(age.values), age.values[1:], np.diff(age.steps)
    anew = ((rise < 0) & (count <= passed)) | ((rise == 0) & (count <= 1))
    return np.compress(anew, age.steps[1:])


def _begins_anew(facts: Facts, at: npt.NDArray[np.int64]) -> bool:
    """Whether the loss is back where it began after most resets, and had fallen before."""
    losses = [
        each for each in (facts.run[LOSS].values() if LOSS in facts.run else ()) if len(each) > 1
    ]
    if len(losses) != 1:
        return False
    loss = losses[0]
    first = float(np.median(loss.values[:_AROUND]))
    back = []
    for step in at:
        place = min(max(int(np.searchsorted(loss.steps, step)), 1), len(loss) - 1)
        before = float(np.median(loss.values[max(place - _AROUND, 0) : place]))
        after = float(np.median(loss.values[place : place + _AROUND]))
        back.append(before < 0.9 * first and after > (first + before) / 2)
    return float(np.mean(back)) > 0.5


def _loaded(facts: Facts, owner: str, age: Series) -> bool:
    """Whether weights were written to between the steps at which most states began anew."""
    if (
        WEIGHT_REWRITTEN_FRACTION not in facts.run
        or owner not in facts.run[WEIGHT_REWRITTEN_FRACTION]
    ):
        return False
    written = facts.run[WEIGHT_REWRITTEN_FRACTION][owner]
    fresh = age.steps[(age.values <= 1) & (age.steps > age.first)]
    known = written.values[np.isin(written.steps, fresh)]
    return len(known) >= _FEW and float((known > _MOST).mean()) > _MOST
