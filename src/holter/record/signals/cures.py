"""A training repeated under one change at a time."""

from holter.record.signals._signal import Per, Phase, Signal

CURE_LOSS = Signal(
    "cure.loss",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Loss of a training that was repeated with one thing changed (a trial each), or unchanged."
    " Steps are those of the training.",
)
