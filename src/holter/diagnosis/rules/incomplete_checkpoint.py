"""The checkpoint lacks a state that resuming needs."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CHECKPOINT_SAVED


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(CHECKPOINT_SAVED,))
def incomplete_checkpoint(facts: Facts) -> Iterator[Verdict]:
    """The checkpoint lacks a state that resuming needs.

    ## What it does
    Preflight reads the statement of the script that saves a checkpoint. One with the optimizer's
    state is meant for resuming. The rule speaks where it then lacks the state of a scheduler or of
    a loss scaler that the training uses.

    ## Why it matters
    A training resumed without its schedule begins anew at the first learning rate; without its loss
    scale it skips steps until it has found one again. Nothing tells, and the loss jumps.

    ## What to do
    Save `scheduler.state_dict()` (and `scaler.state_dict()`) beside the others, and load them.

    ## When it is wrong
    The script restores the schedule by other means, as by calling `step()` so many times, or saves
    it in another file. It is read from the source: a dictionary put together elsewhere is not seen.

    ## How to confirm
    - Resume from a checkpoint and print the learning rate of the first step.
    """
    saved = {name: bool(series.values[-1]) for name, series in facts.run[CHECKPOINT_SAVED].items()}
    missing = [name for name, held in saved.items() if not held]
    if not missing:
        held = " and ".join(saved)
        yield incomplete_checkpoint.clear(f"the checkpoint holds the state of {held}")
        return
    lacking = " and ".join(missing)
    yield incomplete_checkpoint.finding(
        f"the checkpoint holds the state of the optimizer, but not that of the {lacking}",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=tuple(
            Evidence(CHECKPOINT_SAVED, (0, 0), "saved" if held else "used, and not saved", name)
            for name, held in saved.items()
        ),
        fix=f'add "{missing[0]}": {missing[0]}.state_dict() to the checkpoint, and load it',
    )
