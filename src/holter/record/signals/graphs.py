"""What the autograd graph of a loss says: its form, and where its operations have no gradient."""

from holter.record.signals._signal import Per, Phase, Signal

LOSS_BATCH_SOFTMAX = Signal(
    "loss.batch_softmax",
    Per.STEP,
    Phase.FORWARD,
    "0/1",
    "Whether a softmax between the outputs of a model and the loss runs over axis 0 of a matrix, or"
    " of images, with as many rows as the model was given samples, another number of columns, and"
    " targets that do not choose among the rows. Absent where there is no softmax over either.",
)
RESHAPE_MOVED = Signal(
    "reshape.moved",
    Per.STEP,
    Phase.FORWARD,
    "",
    "Calls of `view` and `reshape` by the script, before the backward, after which a dimension of"
    " one size has other elements: `x.reshape(b, c, t)` of what is (b, t, c). Read on a few steps.",
)
LOSS_LARGEST_OUTPUT = Signal(
    "loss.largest_output",
    Per.STEP,
    Phase.FORWARD,
    "0/1",
    "Whether a regression compares the largest output of each sample with its target; 0 where it"
    " compares a chosen one.",
)
LOSS_PAIRED_SPREAD = Signal(
    "loss.paired_spread",
    Per.STEP,
    Phase.FORWARD,
    "",
    "Where a difference of a model's output and targets pairs every one with every other, (N, 1)"
    " and (N,): standard deviation of the outputs over that of the targets. Absent elsewhere.",
)
LOSS_RATIO_CANCELLED = Signal(
    "loss.ratio_cancelled",
    Per.STEP,
    Phase.FORWARD,
    "0/1",
    "Whether an exponential of a difference in the loss, such as the ratio of two policies, is 1"
    " everywhere and both sides have a gradient, so that their gradients cancel out. Absent where"
    " the loss has none.",
)
LOSS_CONSTANT_PART = Signal(
    "loss.constant_part",
    Per.STEP,
    Phase.FORWARD,
    "",
    "What the loss adds up without a gradient: the value of terms outside its graph."
    " Absent where the other terms cannot be computed again. Read on a few steps.",
)
LOSS_LOG_ARGUMENT = Signal(
    "loss.log_argument",
    Per.STEP,
    Phase.FORWARD,
    "",
    "Smallest number whose logarithm is taken between the outputs of a model and the loss.",
)
LOSS_ROOT_ARGUMENT = Signal(
    "loss.root_argument",
    Per.STEP,
    Phase.FORWARD,
    "",
    "Smallest number whose square root is taken between the outputs of a model and the loss.",
)
LOSS_DIVISOR = Signal(
    "loss.divisor",
    Per.STEP,
    Phase.FORWARD,
    "",
    "Smallest magnitude of what is divided by between the outputs of a model and the loss.",
)
GRAPH_OPERATIONS = Signal(
    "graph.operations",
    Per.STEP,
    Phase.FORWARD,
    "operations",
    "Number of operations in the autograd graph of the first backward() of a step. Read on the"
    " first sampled steps, of graphs that are not too large.",
)
GRAPH_DEPTH = Signal(
    "graph.depth",
    Per.STEP,
    Phase.FORWARD,
    "operations",
    "Number of these operations on the longest way from the loss to a leaf: operations that"
    " depend on each other. Read on the same steps.",
)
GRAPH_LEAVES = Signal(
    "graph.leaves",
    Per.STEP,
    Phase.FORWARD,
    "tensors",
    "Number of tensors at which that graph ends, mostly parameters. Read on the same steps.",
)
GRAPH_LOOSE_LEAVES = Signal(
    "graph.loose_leaves",
    Per.STEP,
    Phase.FORWARD,
    "tensors",
    "Number of tensors at which the graph of the loss ends that are neither parameters of a model"
    " nor of an optimizer: inputs that need a gradient, or results that were detached and made to"
    " require one. Read on the first sampled steps, of graphs that are not too large.",
)
MODEL_ELEMENTS = Signal(
    "model.elements",
    Per.STEP,
    Phase.FORWARD,
    "elements",
    "Number of elements that the models returned before the first backward() of a step: it grows"
    " with samples, lengths and calls. Read on steps that are read whole.",
)
LOSS_TERM_GRADIENT = Signal(
    "loss.term_gradient",
    Per.LOSS_TERM,
    Phase.BACKWARD,
    "share",
    "Norm of the gradient that a term of the loss sends to where all terms meet in the model, over"
    " the sum of these norms. Terms are named by the loss function that they are or the operation"
    " that they end in. Penalties on weights are left out. Read on a few steps.",
)
