"""The changes that a rerun of a whole script can make, by name."""

from collections.abc import Iterable
from dataclasses import replace

from holter.diagnosis.facts.replays import STEP_SKIPPED
from holter.lab.birth.guards import OperationGuard
from holter.lab.changes import TappedChange
from holter.lab.changes.clipping import clipped_at_steps
from holter.lab.changes.dropout import DROPOUT_OFF
from holter.lab.changes.learning_rate import RATES_HELD, rates_times
from holter.lab.changes.optimizer import LARGER_EPSILON, LINE_SEARCH
from holter.lab.changes.precision import AUTOCAST_OFF
from holter.lab.replay.planning import NOT_RAISED, clip_norms, raises_rate
from holter.record.births import Birth
from holter.record.trials import TrialKind, TrialName
from holter.watching.blackbox.capture import Capture

_CHANGES = (
    replace(AUTOCAST_OFF, id=TrialName(TrialKind.FLOAT32)),
    DROPOUT_OFF,
    RATES_HELD,
    rates_times(0.1),
    rates_times(1 / 3),
    LARGER_EPSILON,
    LINE_SEARCH,
)
_BY_NAME = {str(change.id): change for change in _CHANGES}


def change_of(name: str, guarded: Birth | None) -> TappedChange:
    """Return the change of a rerun by its name."""
    if guarded is not None and name == str(OperationGuard(guarded).change.id):
        return OperationGuard(guarded).change
    asked = TrialName.parse(name)
    return clipped_at_steps(asked.amount) if asked.kind is TrialKind.CLIP else _BY_NAME[name]


def names(
    capture: Capture, birth: Birth | None, norms: Iterable[float] = ()
) -> list[tuple[str, str]]:
    """Return the changes to try, each with why it does not apply, if so.

    `norms` are those of the gradients before the failure.
    """
    held = str(RATES_HELD.id)
    rises = raises_rate(capture.steps, capture.alarm.step)
    found = [(name, NOT_RAISED if name == held and not rises else "") for name in _BY_NAME]
    found += [(str(clipped_at_steps(norm).id), "") for norm in clip_norms(norms)]
    if birth is not None and OperationGuard.exists_for(birth):
        found.insert(0, (str(OperationGuard(birth).change.id), ""))
    return [(STEP_SKIPPED, ""), *found]
