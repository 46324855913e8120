"""Losses: what is optimised, what is logged, what validation gives."""

from holter.record.signals._signal import Per, Phase, Signal

LOSS = Signal(
    "loss",
    Per.OPTIMIZER,
    Phase.FORWARD,
    "",
    "Training loss of the step: what `backward()` was called on, free of the AMP scale and of a"
    " power of two from 8 on that the script multiplies it by. Of accumulated micro-batches it is"
    " the mean of their losses, as they are before the script divides them by the number of"
    " batches; of other calls it is the sum. Of a closure, in its first call; the value passed to"
    " `log(loss=...)` if no backward was seen.",
)

LOSS_FACTOR = Signal(
    "loss.factor",
    Per.STEP,
    Phase.FORWARD,
    "ratio",
    "What the sum over the `backward()` calls of a step is multiplied by to give its loss: K/N for"
    " N micro-batches whose losses the script divides by K. Only of steps that accumulate.",
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
    "Mean over the elements of what a loss function computed without a backward pass on some data,"
    " whatever its reduction; filed under the training step it followed. Means of batches are"
    " weighted by samples. The owner is `<function> on <data>`, or the function where the script"
    " names no data (see the event `evaluation`); what `log(val_loss=...)` was given has none.",
)

VAL_LOSS_OF_BATCHES = Signal(
    "val.loss_of_batches",
    Per.LOSS_FUNCTION,
    Phase.AFTERWARDS,
    "",
    "Mean of the losses of the batches of a pass without a backward, each batch counted once"
    " whatever its size. Owners as in `val.loss`.",
)

BACKWARD_CALLS = Signal(
    "backward.calls",
    Per.STEP,
    Phase.BACKWARD,
    "calls",
    "Number of `backward()` calls in the step; of a closure, those of its first call.",
)
CLOSURE_CALLS = Signal(
    "closure.calls",
    Per.STEP,
    Phase.BACKWARD,
    "calls",
    "How often `optimizer.step(closure)` called its closure; loss and gradients are those of the"
    " first call, at the weights with which the step begins.",
)
LOSS_ROOT_SHARE = Signal(
    "loss.root_share",
    Per.STEP,
    Phase.FORWARD,
    "ratio",
    "What `backward()` was called on, over the mean over elements of the loss function called"
    " before it; the mean over the step's calls: 1 where a mean goes into backward as it is, 1/K"
    " where it is divided by K, the number of elements where it is a sum. Backward calls before"
    " which several losses were computed are left out, and losses of 0.",
)
LOSS_MEAN = Signal(
    "loss.mean",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "",
    "Mean over the elements of what a loss function computed in training, whatever its reduction:"
    " comparable with `val.loss`. Only of functions called once before each backward.",
)
LOSS_ELEMENTS = Signal(
    "loss.elements",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "elements",
    "Number of elements that a loss function summed in the step; with class weights, the sum of"
    " their weights.",
)
LOSS_COEFFICIENT_SIZE = Signal(
    "loss.coefficient_size",
    Per.STEP,
    Phase.FORWARD,
    "",
    "Sum of the absolute values of the constants that the loss multiplies its terms by (their mean,"
    " where the loss is a mean), such as returns, importance weights or masks; for the first"
    " `backward()` of the step. Constants of one element count where they change. Read with"
    " gradients.",
)
LOSS_COEFFICIENT_BALANCE = Signal(
    "loss.coefficient_balance",
    Per.STEP,
    Phase.FORWARD,
    "ratio",
    "Sum of the same constants over the sum of their absolute values: 1 or -1 where all have one"
    " sign, near 0 for the centred advantages of a policy gradient.",
)
LOSS_SUMMED = Signal(
    "loss.summed",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "0/1",
    "Whether the loss function was asked for a sum over the batch.",
)
BACKWARD_REPEATED = Signal(
    "backward.repeated",
    Per.STEP,
    Phase.BACKWARD,
    "calls",
    "Number of `backward()` calls of the step on a loss that backward had been called on before in"
    " the same step; calls for the gradients of some tensors only (`inputs=`) do not count. Read"
    " with gradients.",
)
VAL_ACCURACY = Signal(
    "val.accuracy",
    Per.LOSS_FUNCTION,
    Phase.AFTERWARDS,
    "share",
    "Share of validation targets that the largest output (for two-class losses: the sign of the"
    " logit, or 0.5) got right, over the pass; ignored targets left out.",
)
VAL_TRAIN_FRACTION = Signal(
    "val.train_fraction",
    Per.MODEL,
    Phase.AFTERWARDS,
    "share",
    "Share of the dropout and batch-norm modules in trained parts of the model that were in"
    " training mode during the first calls of a validation pass; absent where the model has none,"
    " and, of several models, for those that were not called without gradients.",
)
VAL_MODE_TRAINING = Signal(
    "val.mode_training",
    Per.MODEL,
    Phase.AFTERWARDS,
    "share",
    "Share of the same calls in which the model itself was in training mode: 0 where somebody put"
    " single modules back into it.",
)
VAL_GRAPH_FRACTION = Signal(
    "val.graph_fraction",
    Per.LOSS_FUNCTION,
    Phase.AFTERWARDS,
    "share",
    "Share of a validation pass's losses that were computed in eval mode with a graph for a"
    " backward that never came; absent where a backward follows in eval mode, as then some may"
    " have been trained on.",
)
