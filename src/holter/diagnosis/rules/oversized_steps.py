"""Steps are too large for the curvature of the loss."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replayed_changes import SMALLER_STEPS, ChangeFamily
from holter.diagnosis.facts.replays import Replayed, fails, listed, not_failing, replayed, since
from holter.diagnosis.remedies import instructions
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CLIP_NORM, LR, REPLAY_LOSS, REPLAY_NORM
from holter.record.trials import UNCHANGED, TrialKind, TrialName

# Changes that point at another cause.
_ELSEWHERE = (ChangeFamily.PRECISION, ChangeFamily.GUARD, ChangeFamily.SETTING)
_EARLIER = str(TrialName(TrialKind.EARLIER_RATE))
_EXPLODED = 10.0  # times the median norm before, from which on gradients explode
_USELESS = (ChangeFamily.BATCH, *_ELSEWHERE)


@rule(
    severity=Severity.ERROR,
    level=Level.HYPERPARAMETER,
    needs=(REPLAY_LOSS,),
)
def oversized_steps(facts: Facts) -> Iterator[Verdict]:
    """Steps are too large for the curvature of the loss.

    ## What it does
    `holter try replay` repeats the failing window with one change at a time. Reports a failure that
    a lower learning rate or clipping cures, but neither float32 nor a guard at the operation that
    produced the first non-finite value. If clipping alone is enough, it names clipping.

    ## Why it matters
    The curvature of the loss has become too large for this step size: each step overshoots more
    than the one before.

    ## Example
    ```python
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)   # bad
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)   # good
    ```

    ## What to do
    Make the change named in the fix: only changes that cured the failure are named. In
    transformers, normalising queries and keys may cure a failure that clipping only delays.

    ## When it is wrong
    In a short window a lower rate may only delay the failure beyond its end.

    ## How to confirm
    - Continue from the last good checkpoint with the change that cures it.
    - `holter try sharpness` measures the curvature against the learning rate.
    """
    replay = replayed(facts.run)
    if replay is None or not replay.is_reproduced:
        yield oversized_steps.not_examined("no failure was reproduced")
        return
    if not fails(replay):
        yield oversized_steps.clear(not_failing(replay))
        return
    if not replay.all_tried:
        yield oversized_steps.not_examined("not all changes were tried on the failure")
        return
    cured, tried = replay.cured_by(*SMALLER_STEPS), replay.not_cured_by(*SMALLER_STEPS)
    if not cured:
        yield (
            oversized_steps.clear(f"{listed(tried)} did not cure it")
            if tried
            else oversized_steps.not_examined("no smaller step could be tried")
        )
        return
    others, useless = replay.cured_by(*_ELSEWHERE), replay.not_cured_by(*_USELESS)
    if others or replay.is_data:
        yield oversized_steps.clear(
            f"{listed(others)} cured it with steps of the same size"
            if others
            else "the batch fails on older weights too, and other batches do not"
        )
        return
    at_once = replay.onset == replay.failing and not replay.is_born_later
    born = replay.birth if at_once else None
    if born is not None and (born.kind == "bad setting" or born.reaches == "setting"):
        yield oversized_steps.clear(f"an optimizer setting is NaN ({born.where})")
        return
    if replay.is_given and born is not None:
        yield oversized_steps.clear(
            f"the inputs of step {replay.failing} are not finite ({born.where}): smaller steps"
            " change only the data that the script collects"
        )
        return
    if born is not None and born.is_singular and not replay.not_cured_by(ChangeFamily.GUARD):
        yield oversized_steps.clear(
            f"the loss is normal until step {replay.failing}: {born.operation} receives a value"
            f" outside its domain ({born.where})"
        )
        return
    if born is not None and born.is_in_own_backward:
        yield oversized_steps.clear(
            f"the loss of step {replay.failing} is normal: {born.operation} in a backward() of the"
            f" script overflows ({born.where})"
        )
        return
    window = (replay.first, replay.failing)
    smallest = None if replay.minimal_cure is None else replay.minimal_cure.family
    explosion = _explosion(facts, replay)
    yield oversized_steps.finding(
        f"the failure of step {replay.failing}{since(replay)} is cured by {listed(cured)}"
        + (f", not by {listed(useless)}" if useless else "")
        + (f"; {explosion}" if explosion else "")
        + _rise(facts, replay),
        confidence=Confidence.LIKELY,
        onset=replay.onset,
        evidence=(
            Evidence(REPLAY_LOSS, window, replay.says, UNCHANGED),
            *(Evidence(REPLAY_LOSS, window, replay.changes[name].says, name) for name in cured[:2]),
        ),
        fix=instructions(replay, sorted(SMALLER_STEPS, key=lambda family: family != smallest)),
    )


def _rise(facts: Facts, replay: Replayed) -> str:
    """Return how far the learning rate rose before the failure, if the earlier one cures it."""
    if _EARLIER not in replay.cured_by(ChangeFamily.RATE) or LR not in facts.run:
        return ""
    for series in facts.run[LR].values():
        rates = series.values[series.steps <= replay.failing]
        if len(rates) and rates[-1] > rates[len(rates) // 2]:
            now, then = float(rates[-1]), float(rates[len(rates) // 2])
            at = int(series.steps[len(rates) // 2])
            return f"; the learning rate rises from {number(then)} at step {at} to {number(now)}"
    return ""


def _explosion(facts: Facts, replay: Replayed) -> str:
    """Return how far gradients grew before the failure, if clipping them cures it."""
    norms = facts.run[REPLAY_NORM].get(UNCHANGED) if REPLAY_NORM in facts.run else None
    if norms is None or not replay.cured_by(ChangeFamily.CLIP):
        return ""
    finite = np.isfinite(norms.values)
    before = norms.values[finite & (norms.steps < replay.onset)]
    until = norms.values[finite & (norms.steps <= replay.failing)]
    if not len(before):
        return ""
    usual, largest = float(np.median(before)), float(until.max())
    if largest <= _EXPLODED * usual:
        return ""
    recurrent = any("weight_hh" in parameter.name for parameter in facts.parameters)
    through = " through the recurrence" if recurrent else ""
    limit = "" if CLIP_NORM in facts.run else " and are not clipped"
    return f"gradient norms grow{through} from {number(usual)} to {number(largest)}{limit}"
