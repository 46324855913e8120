"""Repetition: whether a step, and a training from a checkpoint, gives the same result again."""

from holter.record.signals._signal import Per, Phase, Signal

DETERMINISM_ELEMENTS = Signal(
    "determinism.elements",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "elements",
    "Elements that differ between a step and its repetition from the same state; one reading a"
    " repetition. The trials are the loss, the gradients and the weights (with buffers and the"
    " optimizer's state), as the training is, and with deterministic algorithms only.",
)
DETERMINISM_ULPS = Signal(
    "determinism.ulps",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "ulps",
    "The largest of these differences, in units in the last place: 1 if two numbers are neighbours"
    " in their data type.",
)
DETERMINISM_SECONDS = Signal(
    "determinism.seconds",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "s",
    "Duration of a training step, as it is and with deterministic algorithms only.",
)
