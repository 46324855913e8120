"""A failure that was captured, and run again."""

from holter.record.signals._signal import Per, Phase, Signal

REPLAY_LOSS = Signal(
    "replay.loss",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Loss of each step of a captured window, run again: as it was, or with one thing changed (a"
    " trial each). Steps are those of the training.",
)
REPLAY_NORM = Signal(
    "replay.grad_norm",
    Per.TRIAL,
    Phase.BACKWARD,
    "",
    "Norm of all gradients of the same step, before clipping.",
)
