"""The checkpoint lacks the state of a scheduler or loss scaler."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CHECKPOINT_SAVED


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(CHECKPOINT_SAVED,))
def incomplete_checkpoint(facts: Facts) -> Iterator[Verdict]:
    """The checkpoint lacks the state of a scheduler or loss scaler.

    ## What it does
    Preflight reads the statement of the script that saves a checkpoint. A checkpoint with the
    optimizer's state is meant for resuming. The rule reports when it lacks the state of a scheduler
    or loss scaler that the training uses.

    ## Why it matters
    Training resumed without its schedule starts again at the initial learning rate; without its
    loss scale it skips steps until a scale fits. There is no error message, and the loss jumps.

    ## Example
    ```python
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)   # bad
    torch.save({..., "scheduler": scheduler.state_dict()}, path)                           # good
    ```

    ## What to do
    Save `scheduler.state_dict()` and `scaler.state_dict()` beside the others, and load them.

    ## When it is wrong
    The script restores the schedule otherwise, for example by calling `step()` repeatedly, or saves
    it in another file. Only the saving statement is read, not a dictionary built elsewhere.

    ## How to confirm
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
        f" {' and '.join(missing)}",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=tuple(
            Evidence(CHECKPOINT_SAVED, (0, 0), "saved" if is_saved else "used, not saved", name)
            for name, is_saved in states.items()
        ),
        fix="add to the checkpoint, and load again: "
        + ", ".join(f'`"{name}": {name}.state_dict()`' for name in missing),
    )
