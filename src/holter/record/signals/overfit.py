"""Fitting a single batch."""

from holter.record.signals._signal import Per, Phase, Signal

OVERFIT_LOSS = Signal(
    "overfit.loss",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Loss of the same few samples at each step of training only on them. The trial `as it is`"
    " changes nothing; each of the others starts from the same weights with one change.",
)
OVERFIT_FLOOR = Signal(
    "overfit.floor",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "The least loss that any predictions could have on these samples, computed from what the loss"
    " function was called with: smoothed, soft and weighted targets, other targets for the same"
    " input, noise in the targets.",
)
OVERFIT_FREE_FLOOR = Signal(
    "overfit.free_floor",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "The least loss found by moving the outputs of the model as if they were free; measured where"
    " the floor cannot be computed. A model may be unable to reach it.",
)
OVERFIT_CONSTANT = Signal(
    "overfit.constant",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "The least loss of one answer for all of the samples: what a model that ignores its inputs"
    " could reach.",
)
OVERFIT_NOISE = Signal(
    "overfit.noise",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Standard deviation of the loss without a weight update, from random numbers in the step; in"
    " the trial `dropout off` without dropout.",
)
OVERFIT_QUIET = Signal(
    "overfit.quiet",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "",
    "Loss of the samples after the trial, with dropout off.",
)
OVERFIT_EXCHANGED = Signal(
    "overfit.exchanged",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "",
    "The same with the inputs of the samples exchanged among them, so that each has the target of"
    " another one.",
)
OVERFIT_SPREAD = Signal(
    "overfit.spread",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "ratio",
    "Standard deviation of predictions over the samples after the trial, relative to their size; 0"
    " if all samples get the same prediction.",
)
OVERFIT_SAMPLES = Signal(
    "overfit.samples",
    Per.TRIAL,
    Phase.DATA,
    "samples",
    "Number of samples that are trained on.",
)
OVERFIT_RATE = Signal(
    "overfit.rate",
    Per.TRIAL,
    Phase.UPDATE,
    "",
    "Learning rate of the trial, that of the first group; a schedule's peak where there is one.",
)
OVERFIT_TARGETS = Signal(
    "overfit.targets",
    Per.TRIAL,
    Phase.DATA,
    "values",
    "Number of target classes and values to learn; for hand-written losses, the number of"
    " predicted values.",
)
OVERFIT_TRAINABLE = Signal(
    "overfit.trainable",
    Per.TRIAL,
    Phase.UPDATE,
    "values",
    "How many of them require a gradient.",
)
OVERFIT_HELD = Signal(
    "overfit.held",
    Per.TRIAL,
    Phase.UPDATE,
    "values",
    "How many of those that require a gradient an optimizer holds.",
)
OVERFIT_REACHED = Signal(
    "overfit.reached",
    Per.TRIAL,
    Phase.BACKWARD,
    "values",
    "How many of those that require a gradient get one other than 0 in the first or the last step"
    " of the trial.",
)
OVERFIT_MOVED = Signal(
    "overfit.moved",
    Per.TRIAL,
    Phase.UPDATE,
    "values",
    "How many parameter values differ after the trial from what they were before.",
)
