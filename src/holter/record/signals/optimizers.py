"""Hyperparameters, schedules and the state of optimizers."""

from holter.record.signals._signal import Per, Phase, Signal

LR = Signal("lr", Per.GROUP, Phase.UPDATE, "", "Learning rate of a parameter group at the step.")

MOMENTUM = Signal("momentum", Per.GROUP, Phase.UPDATE, "", "Momentum of a parameter group.")

BETA1 = Signal("beta1", Per.GROUP, Phase.UPDATE, "", "First beta of a parameter group.")

BETA2 = Signal("beta2", Per.GROUP, Phase.UPDATE, "", "Second beta of a parameter group.")

WEIGHT_DECAY = Signal(
    "weight_decay", Per.GROUP, Phase.UPDATE, "", "Weight decay of a parameter group."
)

SCHEDULE_STEPS = Signal(
    "schedule.steps",
    Per.STEP,
    Phase.AFTERWARDS,
    "calls",
    "Number of `scheduler.step()` calls since the optimizer's step before.",
)
EPSILON = Signal(
    "epsilon",
    Per.GROUP,
    Phase.UPDATE,
    "",
    "The constant that an optimizer of a parameter group adds to its denominator.",
)
OPTIMIZER_AGE = Signal(
    "optimizer.age",
    Per.OPTIMIZER,
    Phase.UPDATE,
    "steps",
    "Steps that the optimizer's state has seen after the update, by its own count for the first"
    " parameter that has one: back at 1 where the state was lost; absent for optimizers that do"
    " not count, as SGD.",
)
ADAM_TINY_FRACTION = Signal(
    "adam.tiny_fraction",
    Per.PARAMETER,
    Phase.UPDATE,
    "share",
    "Share of the parameter's elements (65536 of them at most) whose root second moment before the"
    " update, corrected for its start, is under the optimizer's epsilon: there the step is divided"
    " by epsilon and Adam no longer adapts; sampled.",
)
ADAM_SURPRISE = Signal(
    "adam.surprise",
    Per.PARAMETER,
    Phase.UPDATE,
    "ratio",
    "Root mean square, over the same elements, of the gradient (clipped, as the optimizer takes it)"
    " divided by its root second moment before the update, or by epsilon if that is more: about 1"
    " where gradients are as they were, large where they outgrow what Adam remembers; absent at a"
    " parameter's first step, for 8-bit and sharded states; sampled.",
)
CHECKPOINT_WEIGHTS = Signal(
    "checkpoint.weights",
    Per.OPTIMIZER,
    Phase.UPDATE,
    "share",
    "Share of the optimizer's parameters that were loaded, before the training began, from a"
    " checkpoint that also holds the state of an optimizer. This and the following are recorded"
    " once, before the first update.",
)
CHECKPOINT_OPTIMIZER_STEPS = Signal(
    "checkpoint.optimizer_steps",
    Per.OPTIMIZER,
    Phase.UPDATE,
    "steps",
    "Steps that the optimizer state in that checkpoint has seen; 0 where it does not count them,"
    " absent where it is empty, as that of SGD without momentum.",
)
CHECKPOINT_SCHEDULER_STEPS = Signal(
    "checkpoint.scheduler_steps",
    Per.OPTIMIZER,
    Phase.UPDATE,
    "steps",
    "Steps of the learning-rate scheduler whose state is in that checkpoint.",
)
CHECKPOINT_SAME_OPTIMIZER = Signal(
    "checkpoint.same_optimizer",
    Per.OPTIMIZER,
    Phase.UPDATE,
    "0/1",
    "Whether the optimizer has the parameter groups, the initial learning rate and all other"
    " hyperparameters of the one whose state is in that checkpoint.",
)
CHECKPOINT_RESTORED = Signal(
    "checkpoint.restored",
    Per.OPTIMIZER,
    Phase.UPDATE,
    "0/1",
    "Whether the optimizer has a state before its first update.",
)
