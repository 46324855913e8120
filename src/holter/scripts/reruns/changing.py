"""The changes that a rerun of a whole script can make, by name."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from holter.diagnosis.facts.replayed_changes import STEP_SKIPPED
from holter.lab.birth.guards import OperationGuard
from holter.lab.changes import TappedChange
from holter.lab.changes.clipping import clipped_at_steps
from holter.lab.changes.dropout import DROPOUT_OFF
from holter.lab.changes.gradients import ACCUMULATION_DIVIDED
from holter.lab.changes.learning_rate import RATES_HELD, rates_times
from holter.lab.changes.optimizer import LARGER_EPSILON, LINE_SEARCH
from holter.lab.changes.precision import AUTOCAST_OFF
from holter.lab.changes.weights import EDITS_LEFT_OUT
from holter.lab.replay.planning import NOT_EDITED, NOT_MORE, NOT_RAISED, clip_norms
from holter.lab.replay.rates import raises_rate
from holter.record.births import Birth
from holter.record.trials import TrialKind, TrialName
from holter.scripts.reruns.holding import HeldNumber, held
from holter.watching.blackbox.capture import Capture

_HELD = (TrialKind.HELD, TrialKind.FACTOR, TrialKind.COUNTER_HELD, TrialKind.COUNTER_KEPT)
_CHANGES = (
    replace(AUTOCAST_OFF, id=TrialName(TrialKind.FLOAT32)),
    DROPOUT_OFF,
    RATES_HELD,
    rates_times(0.1),
    rates_times(1 / 3),
    ACCUMULATION_DIVIDED,
    LARGER_EPSILON,
    LINE_SEARCH,
    EDITS_LEFT_OUT,
)
_BY_NAME = {str(change.id): change for change in _CHANGES}


def change_of(
    name: str, guarded: Birth | None, numbers: tuple[HeldNumber, ...] = ()
) -> TappedChange:
    """Return the change of a rerun by its name; `numbers` are those that it holds."""
    if guarded is not None and name == str(OperationGuard(guarded).change.id):
        return OperationGuard(guarded).change
    asked = TrialName.parse(name)
    if asked.kind in _HELD:
        return TappedChange(asked, f"Hold {asked.detail}.", partial(held, numbers))
    return clipped_at_steps(asked.amount) if asked.kind is TrialKind.CLIP else _BY_NAME[name]


def names(
    capture: Capture,
    birth: Birth | None,
    norms: Iterable[float] = (),
    *,
    edits: bool,
    rises: bool = False,
    more: bool = False,
) -> list[tuple[str, str]]:
    """Return the changes to try, each with why it does not apply, if so.

    `norms` are those of the gradients before the failure. `edits` says whether the script was seen
    to write to weights between steps, `rises` whether its learning rate rises for long, `more`
    whether steps are made of more batches than before.
    """
    raised = rises or raises_rate(capture.steps, capture.alarm.step)
    why_not = {
        str(RATES_HELD.id): "" if raised else NOT_RAISED,
        str(EDITS_LEFT_OUT.id): "" if edits else NOT_EDITED,
        str(ACCUMULATION_DIVIDED.id): "" if more else NOT_MORE,
    }
    found = [(name, why_not.get(name, "")) for name in _BY_NAME]
    found += [(str(clipped_at_steps(norm).id), "") for norm in clip_norms(norms)]
    if birth is not None and OperationGuard.exists_for(birth):
        found.insert(0, (str(OperationGuard(birth).change.id), ""))
    return [(STEP_SKIPPED, ""), *found]
