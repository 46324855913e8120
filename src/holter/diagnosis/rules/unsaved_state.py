"""The training has state that no `state_dict()` contains."""

import math
from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.events import StateUnsaved
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import RESUME_DEVIATION, RESUME_LOSS, RESUME_RATE

_NAMED = 3  # attributes that are listed
_ROUNDING = 1e-6  # deviation that may be rounding


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(RESUME_DEVIATION, RESUME_LOSS, RESUME_RATE),
    preview=True,
)
def unsaved_state(
    facts: Facts,
    *,
    times: Annotated[float, "deviation, in multiples of that of a plain repetition"] = 10.0,
) -> Iterator[Verdict]:
    """The training has state that no `state_dict()` contains.

    ## What it does
    `holter try resume` saves the `state_dict()` of model, optimizer, scheduler, loss scaler and
    averaged weights and the random state, loads all of it into a restarted training, and takes the
    same steps as the uninterrupted one. Reports if they deviate although everything was restored.

    ## Why it matters
    A resumed training differs from the interrupted one even with a complete checkpoint: running
    statistics, counters or caches in plain attributes are reset.

    ## Example
    ```python
    self.mean = torch.zeros(8)                          # bad
    self.register_buffer("mean", torch.zeros(8))        # good
    ```

    ## What to do
    Register tensors with `register_buffer`, and return other values from `get_extra_state`. In a
    custom optimizer or scheduler, return them from `state_dict()`.

    ## When it is wrong
    On resuming, the script rebuilds the state from a separate file or from the data.

    ## How to confirm
    - Compare the named attributes after loading a checkpoint with those of the running training.
    """
    deviations = facts.run[RESUME_DEVIATION]
    if "everything loaded" not in deviations or "repeated" not in deviations:
        yield unsaved_state.not_examined("no training was saved and loaded")
        return
    resumed, repeated = (
        float(deviations[trial].values[-1]) for trial in ("everything loaded", "repeated")
    )
    if not math.isfinite(resumed):
        yield unsaved_state.not_examined("the weights are not finite after the checkpoint")
        return
    if not resumed > max(times * repeated, _ROUNDING):
        yield unsaved_state.clear(
            "two steps after a checkpoint with every `state_dict()` was loaded, the weights are"
            f" those of the uninterrupted training{'' if resumed else ' bit for bit'}"
        )
        return
    names = [name for event in facts.run.events_of(StateUnsaved) for name in event.what.names]
    listed = ", ".join(f"`{name}`" for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    yield unsaved_state.finding(
        f"with every `state_dict()` loaded the next two updates deviate by {percent(resumed)} from"
        " the uninterrupted training" + (f"; not restored: {listed}{more}" if listed else ""),
        confidence=Confidence.CERTAIN,
        onset=0,
        evidence=(
            Evidence(RESUME_DEVIATION, (0, 0), f"{resumed:.3g}", "everything loaded"),
            Evidence(RESUME_DEVIATION, (0, 0), f"{repeated:.3g} without a restart", "repeated"),
        ),
        fix='register the tensor with `self.register_buffer("name", tensor)`, or save and load it'
        " with the checkpoint",
    )
