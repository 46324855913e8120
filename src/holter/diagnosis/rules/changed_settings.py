"""A number that the script changes from step to step makes the training fail."""

from collections.abc import Iterator

from holter.diagnosis.causes import FAILURES
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replayed_changes import ChangeFamily
from holter.diagnosis.facts.replays import fails, listed, not_failing, replayed, since
from holter.diagnosis.remedies import instructions
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REPLAY_LOSS
from holter.record.trials import UNCHANGED, TrialKind, parts

_MOVED = (ChangeFamily.SETTING, ChangeFamily.COUNTER)


@rule(
    severity=Severity.ERROR,
    level=Level.HYPERPARAMETER,
    needs=(REPLAY_LOSS,),
)
def changed_settings(facts: Facts) -> Iterator[Verdict]:
    """A number that the script changes from step to step makes the training fail.

    ## What it does
    `holter try replay` holds each number that the script gives to its steps at the value it had
    when the window began: a temperature, a loss weight, the rate of an inner loop. Reports the
    numbers that prevent the failure when held, with the same batches and learning rate. A constant
    slightly above 1, such as a discount, is also tried as its reciprocal.

    ## Why it matters
    A different batch or a smaller learning rate only postpones such a failure, because the number
    keeps changing.

    ## Example
    ```python
    temperature = 0.5 * 0.98**step              # bad
    temperature = max(0.05, 0.5 * 0.98**step)   # good
    ```

    ## What to do
    Bound the schedule of the named number, or change it more slowly.

    ## When it is wrong
    The number selects the data of a step, and the data is the cause.

    ## How to confirm
    - Keep the number constant from the reported step on.
    """
    replay = replayed(facts.run)
    if replay is None or not replay.is_reproduced:
        yield changed_settings.not_examined("no failure was reproduced")
        return
    if not fails(replay):
        yield changed_settings.clear(not_failing(replay))
        return
    if not replay.all_tried:
        yield changed_settings.not_examined("not all changes were tried on the failure")
        return
    cured, tried = replay.cured_by(*_MOVED), replay.not_cured_by(*_MOVED)
    if not cured:
        yield (
            changed_settings.clear(f"{listed(tried)} did not cure it")
            if tried
            else changed_settings.not_examined("no number of the script changes in the window")
        )
        return
    least = replay.minimal_cure
    counted = not replay.cured_by(ChangeFamily.SETTING)
    if counted and least is not None and least.family is not ChangeFamily.COUNTER:
        yield changed_settings.clear(
            f"{least.name} cured it; {listed(cured)} only keeps the script from getting there"
        )
        return
    guards = replay.cured_by(ChangeFamily.GUARD)
    window = (replay.first, replay.failing)
    yield changed_settings.finding(
        f"the failure of step {replay.failing}{since(replay)} is cured by {listed(cured)}:"
        f" {_what(cured)}",
        confidence=Confidence.LIKELY,
        onset=replay.onset,
        evidence=(
            Evidence(REPLAY_LOSS, window, replay.says, UNCHANGED),
            *(Evidence(REPLAY_LOSS, window, replay.changes[name].says, name) for name in cured[:2]),
        ),
        # Where a guard cures as well, an operation is unsafe, and the number has only reached it.
        explains=("poisonous-batch", *FAILURES) if guards else None,
        fix=instructions(replay, _MOVED[:1] if not counted else _MOVED),
    )


def _what(cured: list[str]) -> str:
    """Return what kind of number it is."""
    kinds = {parts(name)[0].kind for name in cured}
    if kinds == {TrialKind.FACTOR}:
        return "what is multiplied by more than 1 in each step grows without bound"
    if kinds == {TrialKind.COUNTER_KEPT}:
        return "a counter that the script sets back"
    return "a number that the script changes"
