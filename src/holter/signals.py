"""The catalogue of everything a run may record: one `Signal` per measured quantity."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from types import MappingProxyType


class Per(StrEnum):
    """What one reading of a signal belongs to."""

    STEP = "step"
    OPTIMIZER = "optimizer"
    GROUP = "group"
    MODEL = "model"
    LOADER = "loader"
    LOSS_FUNCTION = "loss function"
    PARAMETER = "parameter"
    MODULE = "module"


class Phase(IntEnum):
    """When in a step a signal is read: of two signals of one step, the earlier moved first."""

    DATA = 0
    FORWARD = 1
    BACKWARD = 2
    UPDATE = 3
    AFTERWARDS = 4


@dataclass(frozen=True, slots=True)
class Signal:
    """A quantity that can be recorded. `rare` ones are written when they change, not each step."""

    name: str
    per: Per
    phase: Phase
    unit: str
    doc: str
    rare: bool = False

    @property
    def stream(self) -> str:
        """The family of segment files that holds this signal."""
        if self.per is Per.MODULE:
            return "modules"
        if self.per is not Per.PARAMETER:
            return "steps"
        return "facts" if self.rare else "parameters"

    def __str__(self) -> str:
        return self.name


LOSS = Signal(
    "loss",
    Per.OPTIMIZER,
    Phase.FORWARD,
    "",
    "Training loss of the step: the sum of all that `backward()` was called on, free of the AMP"
    " scale; what `log(loss=...)` was given where no backward was seen.",
)
LOSS_LOGGED = Signal(
    "loss.logged",
    Per.OPTIMIZER,
    Phase.FORWARD,
    "",
    "Mean of the values that the training loop passed to `log(loss=...)` in the step.",
)
VAL_LOSS = Signal(
    "val.loss",
    Per.LOSS_FUNCTION,
    Phase.AFTERWARDS,
    "",
    "What a loss function returned for validation batches, averaged over the pass by batch size;"
    " filed under the training step it followed.",
)
GRAD_NORM = Signal(
    "grad.norm",
    Per.PARAMETER,
    Phase.BACKWARD,
    "",
    "L2 norm of the gradient: unscaled, before clipping, local to the rank; absent where no"
    " gradient arrived.",
)
GRAD_ABSMAX = Signal(
    "grad.absmax",
    Per.PARAMETER,
    Phase.BACKWARD,
    "",
    "Largest absolute value in the gradient: unscaled, before clipping, local to the rank.",
)
GRAD_NONFINITE = Signal(
    "grad.nonfinite",
    Per.PARAMETER,
    Phase.BACKWARD,
    "elements",
    "Number of NaN and infinite elements in the gradient.",
)
GRAD_ZERO_FRACTION = Signal(
    "grad.zero_fraction",
    Per.PARAMETER,
    Phase.BACKWARD,
    "share",
    "Share of the gradient's elements that are exactly zero.",
)
GRAD_TOTAL_NORM = Signal(
    "grad.total_norm",
    Per.OPTIMIZER,
    Phase.BACKWARD,
    "",
    "L2 norm over all gradients of the parameters one optimizer holds, before clipping; non-finite"
    " where any of them is, absent where none arrived.",
)
GRAD_CARRIED_FRACTION = Signal(
    "grad.carried_fraction",
    Per.OPTIMIZER,
    Phase.BACKWARD,
    "share",
    "Share of a few watched parameters whose gradient of the optimizer's last step was still there,"
    " never cleared, when this one took place.",
)
WEIGHT_NORM = Signal(
    "weight.norm",
    Per.PARAMETER,
    Phase.UPDATE,
    "",
    "L2 norm of the parameter after the update.",
)
WEIGHT_TOTAL_NORM = Signal(
    "weight.total_norm",
    Per.OPTIMIZER,
    Phase.UPDATE,
    "",
    "L2 norm over all parameters one optimizer's step concerns, after the update; non-finite where"
    " any of them is.",
)
UPDATE_RATIO = Signal(
    "update.ratio",
    Per.PARAMETER,
    Phase.UPDATE,
    "ratio",
    "Norm of the change that `optimizer.step()` made, over the norm of the parameter before;"
    " sampled.",
)
UPDATE_UNCHANGED_FRACTION = Signal(
    "update.unchanged_fraction",
    Per.PARAMETER,
    Phase.UPDATE,
    "share",
    "Share of the parameter's elements that `optimizer.step()` left bit for bit as they were;"
    " sampled.",
)
LR = Signal("lr", Per.GROUP, Phase.UPDATE, "", "Learning rate of a parameter group at the step.")
MOMENTUM = Signal("momentum", Per.GROUP, Phase.UPDATE, "", "Momentum of a parameter group.")
BETA1 = Signal("beta1", Per.GROUP, Phase.UPDATE, "", "First beta of a parameter group.")
BETA2 = Signal("beta2", Per.GROUP, Phase.UPDATE, "", "Second beta of a parameter group.")
WEIGHT_DECAY = Signal(
    "weight_decay", Per.GROUP, Phase.UPDATE, "", "Weight decay of a parameter group."
)
PARAMETER_TRAINABLE = Signal(
    "parameter.trainable",
    Per.PARAMETER,
    Phase.DATA,
    "0/1",
    "Whether the parameter requires a gradient.",
    rare=True,
)
PARAMETER_OPTIMIZER = Signal(
    "parameter.optimizer",
    Per.PARAMETER,
    Phase.DATA,
    "index",
    "Index of the optimizer that holds the parameter; -1 where none does.",
    rare=True,
)
PARAMETER_IN_MODEL = Signal(
    "parameter.in_model",
    Per.PARAMETER,
    Phase.DATA,
    "0/1",
    "Whether the parameter belongs to a model that is trained.",
    rare=True,
)
ACTIVATION_MEAN = Signal(
    "activation.mean",
    Per.MODULE,
    Phase.FORWARD,
    "",
    "Mean of what the module returned (its first floating-point tensor), over all elements of all"
    " its calls with gradients enabled before the step's first backward; in float32; sampled. Only"
    " modules without children have one: `F.relu` and the like are functions and are not seen, nor"
    " are modules that are compiled or scripted or run inside a reentrant checkpoint.",
)
ACTIVATION_STD = Signal(
    "activation.std",
    Per.MODULE,
    Phase.FORWARD,
    "",
    "Standard deviation (divided by n, about `activation.mean`) of the same elements; blind below"
    " about 1/3000 of the mean; sampled.",
)
ACTIVATION_ABSMAX = Signal(
    "activation.absmax",
    Per.MODULE,
    Phase.FORWARD,
    "",
    "Largest absolute value of the same elements; NaN where any of them is; sampled.",
)
ACTIVATION_ZERO_FRACTION = Signal(
    "activation.zero_fraction",
    Per.MODULE,
    Phase.FORWARD,
    "share",
    "Share of the same elements that are exactly zero; sampled.",
)
ACTIVATION_DEAD_FRACTION = Signal(
    "activation.dead_fraction",
    Per.MODULE,
    Phase.FORWARD,
    "share",
    "Share of the units of a ReLU, ReLU6, Threshold, Softshrink or Hardshrink module that were"
    " zero for all samples of a window of sampled steps; written when the window ends, after 1024"
    " samples or 4 steps. Behind convolutions a unit is a channel and a sample an entry of the"
    " batch; else a unit is an index of the last dimension, and each position is a sample. `F.relu`"
    " is a function and not seen.",
)
ACTIVATION_SATURATED_FRACTION = Signal(
    "activation.saturated_fraction",
    Per.MODULE,
    Phase.FORWARD,
    "share",
    "Share of a module's outputs that are saturated: Sigmoid under 0.01 or over 0.99, Tanh over"
    " 0.97 in magnitude, Hardsigmoid and Hardtanh at either bound, ReLU6 at 6; for Softmax the"
    " share of distributions whose largest probability is over 0.99; sampled. `torch.sigmoid`,"
    " `F.softmax` and attention are functions and not seen.",
)
MODE_TRAINING = Signal(
    "mode.training",
    Per.MODEL,
    Phase.FORWARD,
    "0/1",
    "Whether the model was in training mode when the step's backward began.",
)
MODE_EVAL_FRACTION = Signal(
    "mode.eval_fraction",
    Per.MODEL,
    Phase.FORWARD,
    "share",
    "Share of the dropout and batch-norm modules in trained parts of the model that were in eval"
    " mode when the step's backward began; absent where the model has none.",
)
BACKWARD_CALLS = Signal(
    "backward.calls",
    Per.STEP,
    Phase.BACKWARD,
    "calls",
    "Number of `backward()` calls in the step.",
)
CLIP_NORM = Signal(
    "clip.norm",
    Per.STEP,
    Phase.BACKWARD,
    "",
    "Total gradient norm that the script's clipping call measured, before clipping.",
)
CLIP_LIMIT = Signal(
    "clip.limit", Per.STEP, Phase.BACKWARD, "", "Limit given to the script's clipping call."
)
CLIP_COEFFICIENT = Signal(
    "clip.coefficient",
    Per.STEP,
    Phase.BACKWARD,
    "ratio",
    "Factor by which clipping scaled the gradients: 1 where the norm was under the limit.",
)
AMP_SCALE = Signal(
    "amp.scale", Per.STEP, Phase.BACKWARD, "", "Loss scale of the GradScaler during the step."
)
AMP_SKIPPED = Signal(
    "amp.skipped",
    Per.STEP,
    Phase.UPDATE,
    "0/1",
    "Whether the GradScaler skipped the optimizer's step for non-finite gradients.",
)
SCHEDULE_STEPS = Signal(
    "schedule.steps",
    Per.STEP,
    Phase.AFTERWARDS,
    "calls",
    "Number of `scheduler.step()` calls since the optimizer's step before.",
)
DATA_BATCH_SIZE = Signal(
    "data.batch_size",
    Per.LOADER,
    Phase.DATA,
    "samples",
    "Samples that a loader delivered for the step, summed over micro-batches.",
)
TIME_DATA_WAIT = Signal(
    "time.data_wait",
    Per.LOADER,
    Phase.DATA,
    "s",
    "Time the training loop waited for a loader's batches of the step.",
)
WATCH_TIME = Signal(
    "watch.time",
    Per.STEP,
    Phase.AFTERWARDS,
    "s",
    "Time that holter itself took of the step: on the host, or on the GPU if that is more or if"
    " the host ran ahead of it anyway.",
)

WATCH_DEVICE_TIME = Signal(
    "watch.device_time",
    Per.STEP,
    Phase.AFTERWARDS,
    "s",
    "Time that holter's own work took on a GPU during the step, by its clock.",
)

CATALOGUE: Mapping[str, Signal] = MappingProxyType(
    {each.name: each for each in list(globals().values()) if isinstance(each, Signal)}
)
