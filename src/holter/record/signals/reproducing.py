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
CHECKPOINT_SAVED = Signal(
    "checkpoint.saved",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "",
    "Whether the checkpoint that the script saves for resuming holds the state of the optimizer,"
    " the scheduler, the loss scaler, averaged weights or the position in the data (a trial each,"
    " where there is such): 1 or 0.",
)
RESUME_LOSS = Signal(
    "resume.loss",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Loss of the first step after a checkpoint, on the same batch: uninterrupted, repeated, and"
    " resumed with everything or without a part.",
)
RESUME_RATE = Signal(
    "resume.rate",
    Per.TRIAL,
    Phase.UPDATE,
    "",
    "Learning rate of the first parameter group at the second step after the checkpoint.",
)
RESUME_DEVIATION = Signal(
    "resume.deviation",
    Per.TRIAL,
    Phase.UPDATE,
    "ratio",
    "Distance between the weights after two steps and those of the uninterrupted training, over the"
    " way that these have gone since the checkpoint.",
)
