"""The checkpoint lacks a part of the training state."""

from collections.abc import Iterator, Sequence

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CHECKPOINT_SAVED, RESUME_DEVIATION

_FIXES = {
    "averaged weights": '`"ema": ema.state_dict()`',
    "position in the data": '`"batch": number of batches seen in this epoch`',
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(CHECKPOINT_SAVED,))
def incomplete_checkpoint(facts: Facts) -> Iterator[Verdict]:
    """The checkpoint lacks a part of the training state.

    ## What it does
    `holter try resume` and preflight read the statement of the script that saves a checkpoint. One
    with the optimizer's state is meant for resuming. The rule reports when it lacks the state of a
    scheduler, a loss scaler or averaged weights, or is saved within an epoch without the position
    in the data.

    ## Why it matters
    Training resumed without its schedule starts again at the initial learning rate; without its
    loss scale it skips steps until a scale fits. Averaged weights start again from the current
    ones. Within an epoch, batches are repeated, and the loss looks better than it is. There is no
    error message.

    ## Example
    ```python
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)   # bad
    torch.save({..., "scheduler": scheduler.state_dict()}, path)                           # good
    ```

    ## What to do
    Also save `scheduler.state_dict()` and `scaler.state_dict()`, and load them. If you save within
    an epoch, store the number of batches seen and skip them on resuming.

    ## When it is wrong
    The script restores the schedule in another way, for example by calling `step()` repeatedly, or
    saves it in another file. Only the saving statement is read, not a dictionary built elsewhere.

    ## How to confirm
    - `holter try resume SCRIPT` repeats the same steps uninterrupted and without each part.
    - Resume from a checkpoint and print the learning rate of the first step.
    """
    states = {name: bool(series.values[-1]) for name, series in facts.run[CHECKPOINT_SAVED].items()}
    missing = [name for name, is_saved in states.items() if not is_saved]
    if not missing:
        saved = " and ".join(states)
        yield incomplete_checkpoint.clear(f"the checkpoint holds the state of {saved}")
        return
    yield incomplete_checkpoint.finding(
        "the checkpoint holds the state of the optimizer, but not that of the"
        f" {' and '.join(missing)}{_measured(facts, missing)}",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=tuple(
            Evidence(CHECKPOINT_SAVED, (0, 0), "saved" if is_saved else "used, not saved", name)
            for name, is_saved in states.items()
        ),
        fix="add to the checkpoint, and load again: "
        + ", ".join(_FIXES.get(name, f'`"{name}": {name}.state_dict()`') for name in missing),
    )


def _measured(facts: Facts, missing: Sequence[str]) -> str:
    """Return what the next steps are like without these parts, where that was measured."""
    if RESUME_DEVIATION not in facts.run:
        return ""
    deviations = facts.run[RESUME_DEVIATION]
    parts = [
        f"without the {name} the next two updates deviate by {percent(found)}"
        for name in missing
        if (series := deviations.get(f"without {name}")) is not None
        and (found := float(series.values[-1])) > 0
    ]
    return f"; {'; '.join(parts)}" if parts else ""
