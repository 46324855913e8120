"""The number of batches per step changes, and the training fails there."""

from collections.abc import Iterable, Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.accumulations import CONSTANT, accumulation_changes
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.facts.replayed_changes import ChangeFamily
from holter.diagnosis.facts.replays import Replayed, replayed
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number
from holter.record import Series
from holter.record.band import WINDOW, Band
from holter.record.events import CaptureWritten
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import BACKWARD_CALLS, GRAD_TOTAL_NORM, LOSS

_ERRORS = 6.0  # standard errors by which a level is surely above another
_RISE = 0.2  # and by so much of it at least


@rule(severity=Severity.ERROR, level=Level.PROCEDURE, needs=(BACKWARD_CALLS, LOSS))
def changed_accumulation(
    facts: Facts,
    *,
    max_delay: Annotated[int, "steps between the change and the failure"] = 8,
    min_growth: Annotated[float, "ratio of the gradient norms after and before"] = 1.5,
) -> Iterator[Verdict]:
    """The number of batches per step changes, and the training fails there.

    ## What it does
    Counts `backward()` calls per step. Reports a failure within a few steps after that number
    changed, or a loss that stays above its level from there on, if gradients grew with it. A replay
    tries the failing steps with divided gradients, and with the previous number of batches.

    ## Why it matters
    The gradient is a sum over the batches of a step. If the loss is not divided by their number,
    more batches mean larger steps, like a higher learning rate.

    ## Example
    ```python
    (loss / 4).backward()              # bad
    (loss / batches_of_this_step).backward()  # good
    ```

    ## What to do
    Divide each loss by the number of batches of its own step, also where a schedule changes that
    number and in the last step of an epoch.

    ## When it is wrong
    The learning rate or the data changed at the same step.

    ## How to confirm
    - Compare gradient norms before and after the change: they should agree.
    """
    calls = facts.run[BACKWARD_CALLS].get("")
    if calls is None or len(calls) <= CONSTANT:
        yield changed_accumulation.not_examined("too few steps with a count of backward() calls")
        return
    changes = accumulation_changes(calls)
    if not changes:
        yield changed_accumulation.clear(
            f"a step takes {number(float(np.median(calls.values)))} backward() calls throughout"
        )
        return
    replay = replayed(facts.run)
    failing = _failing(facts, replay, changes, max_delay)
    tried = None if replay is None else _tried(replay)
    # A trial tells more than how soon it fails: small steps take their time to go wrong.
    delay = len(calls) if tried else max_delay
    near = [step for step in changes if failing is not None and 0 <= failing - step <= delay]
    before, after = changes[near[-1] if near else next(iter(changes))]
    if not near or failing is None:
        yield changed_accumulation.harmless(
            f"the number of backward() calls per step changes from {before:g} to {after:g} at step"
            f" {next(iter(changes))}, without a failure there"
        )
        return
    step = near[-1]
    survived = [e for e in changes if e + max_delay < failing and changes[e] == (before, after)]
    if survived and not tried:
        yield changed_accumulation.clear(
            f"the same change at step {survived[0]} is followed by no failure"
        )
        return
    if tried == "":
        yield changed_accumulation.clear("the previous number of batches per step did not cure it")
        return
    growth = _growth(facts, step, failing)
    if tried is None and (growth is None or growth < min_growth):
        yield changed_accumulation.clear(
            "gradients have the same size before and after the number of batches changes"
            if growth is not None
            else "no gradient norms were read around the change"
        )
        return
    grown = f", and gradients grow {number(growth)} times" if growth is not None else ""
    cured = f"; {tried} cures it" if tried else ""
    yield changed_accumulation.finding(
        f"the failure of step {failing} follows a change in the number of batches per step, from"
        f" {before:g} to {after:g} at step {step}{grown}{cured}",
        confidence=Confidence.CERTAIN if tried else Confidence.LIKELY,
        onset=step,
        evidence=(
            Evidence(BACKWARD_CALLS, (max(step - 1, 0), step), f"{before:g}, then {after:g}"),
            *(
                (Evidence(GRAD_TOTAL_NORM, (step, failing), f"{number(growth)} times as large"),)
                if growth is not None
                else ()
            ),
        ),
        fix="divide each loss by the number of batches of its own step:"
        " `(loss / batches_of_this_step).backward()`",
    )


def _failing(
    facts: Facts, replay: Replayed | None, changes: Iterable[int], max_delay: int
) -> int | None:
    """Return the step at which the training begins to fail, or None."""
    if replay is not None:
        return replay.onset
    captured = [event.what for event in facts.run.events_of(CaptureWritten)]
    alarms = [each.of for each in captured if each.alarm in ("nonfinite", "spike")]
    if alarms:
        return min(alarms)
    loss = max(facts.run[LOSS].values(), key=len)
    above = [step for step in changes if _stays_above(loss, step)]
    outcome = facts.outcome
    if outcome is not None and outcome.state in (OutcomeState.BROKE, OutcomeState.DIVERGED):
        left = [step for step in changes if (loss.steps < step).any()]
        above += [step for step in left if _leaves_its_band(loss, step, max_delay)]
    return min(above, default=None)


def _leaves_its_band(loss: Series, step: int, delay: int) -> bool:
    """Whether the loss rises above its band within so many steps from one on."""
    before = loss.values[(loss.steps < step) & np.isfinite(loss.values)][-WINDOW:]
    after = loss.values[(loss.steps >= step) & (loss.steps <= step + delay)]
    return len(before) > 0 and not (after <= Band.of(before).ceiling()).all()


def _stays_above(loss: Series, step: int) -> bool:
    """Whether the loss is surely at a higher level from a step on, up to the end."""
    before = loss.values[(loss.steps < step) & np.isfinite(loss.values)][-WINDOW:]
    after = loss.values[loss.steps >= step]
    if min(len(before), len(after)) < WINDOW or not np.isfinite(after).all():
        return False
    band = Band.of(before)
    limit = band.median + max(_ERRORS * band.spread / len(before) ** 0.5, _RISE * abs(band.median))
    return bool(min(np.median(after), np.median(after[-WINDOW // 2 :])) > limit)


def _tried(replay: Replayed) -> str | None:
    """Return what acts on the number of batches and cured the failure, "" if nothing did.

    None if nothing of that kind was tried.
    """
    cured = replay.cured_by(ChangeFamily.ACCUMULATION)
    if cured:
        return cured[0]
    return "" if replay.not_cured_by(ChangeFamily.ACCUMULATION) else None


def _growth(facts: Facts, step: int, failing: int) -> float | None:
    """Return how many times gradients are larger from a step on, at the first reading of it."""
    series = next(iter(facts.run[GRAD_TOTAL_NORM].values()), None) if _has_norms(facts) else None
    if series is None:
        return None
    finite = np.isfinite(series.values)
    before = series.values[finite & (series.steps < step)][-CONSTANT:]
    after = series.values[finite & (series.steps >= step) & (series.steps <= failing)]
    if not len(before) or not len(after) or not np.median(before):
        return None
    return float(after[0] / np.median(before))


def _has_norms(facts: Facts) -> bool:
    return GRAD_TOTAL_NORM in facts.run
