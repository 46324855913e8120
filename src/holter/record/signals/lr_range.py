"""The learning-rate range test."""

from holter.record.signals._signal import Per, Phase, Signal

LR_RANGE_RATE = Signal(
    "lr_range.rate",
    Per.TRIAL,
    Phase.UPDATE,
    "",
    "Learning rate of the first group at each step of a trial: a `sweep` raises it from step to"
    " step, a `confirm` keeps it. Other groups keep their ratio to it.",
)
LR_RANGE_LOSS = Signal(
    "lr_range.loss",
    Per.TRIAL,
    Phase.FORWARD,
    "loss",
    "Loss of the training batch of each step of a trial, before the weights change.",
)
LR_RANGE_HELD = Signal(
    "lr_range.held",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "loss",
    "Mean loss of the same few held batches after a step of a trial, with the same random numbers.",
)
LR_RANGE_ERROR = Signal(
    "lr_range.error",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "loss",
    "Standard error, over the held batches, of the change of their loss since the start.",
)
LR_RANGE_START = Signal(
    "lr_range.start",
    Per.TRIAL,
    Phase.FORWARD,
    "loss",
    "Loss of each held batch before any step; its steps count held batches.",
)
LR_RANGE_END = Signal(
    "lr_range.end",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "loss",
    "Loss of each held batch in the last part of a `confirm`; its steps count held batches.",
)
LR_RANGE_MOVED = Signal(
    "lr_range.moved",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "ratio",
    "Relative change of the weights at the end of a trial: norm of the change over norm.",
)
LR_RANGE_CONFIGURED = Signal(
    "lr_range.configured",
    Per.TRIAL,
    Phase.UPDATE,
    "",
    "Learning rate of the first group as the training sets it: its `peak` over the schedule, and"
    " what it is `now`.",
)
