"""Parameters: who holds them, how large they are, how they change."""

from holter.record.signals._signal import Per, Phase, Signal

WEIGHT_NORM = Signal(
    "weight.norm",
    Per.PARAMETER,
    Phase.UPDATE,
    "",
    "L2 norm of the parameter after the update.",
)

WEIGHT_REWRITTEN_FRACTION = Signal(
    "weight.rewritten_fraction",
    Per.OPTIMIZER,
    Phase.UPDATE,
    "share",
    "Share of a few watched parameters that somebody wrote to between the last step and this one,"
    " as `load_state_dict` does; what is written through `.data` is not seen.",
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

PARAMETER_GIVEN = Signal(
    "parameter.given",
    Per.PARAMETER,
    Phase.DATA,
    "0/1",
    "Whether the parameter required a gradient when its optimizer was given it.",
    rare=True,
)

WEIGHT_ABSMAX = Signal(
    "weight.absmax",
    Per.PARAMETER,
    Phase.UPDATE,
    "",
    "Largest absolute value in the parameter after the update; sampled.",
)
WEIGHT_TWIN_FRACTION = Signal(
    "weight.twin_fraction",
    Per.PARAMETER,
    Phase.UPDATE,
    "share",
    "Share of a weight's other rows (output units of a layer; 512 of them at most) that equal its"
    " first row bit for bit after the update; absent for vectors, single rows and columns,"
    " embeddings and norms; read every fourth time that weights are.",
)

WEIGHT_ROW_COHERENCE = Signal(
    "weight.row_coherence",
    Per.PARAMETER,
    Phase.UPDATE,
    "ratio",
    "Squared norm of a weight's mean row over the mean squared norm of its rows, before the update:"
    " 1 if all rows are equal, about 1 over their number if they are random; of 512 rows and 256"
    " columns at most, and of one gate or projection where several are stacked; absent for fewer"
    " than four rows, embeddings and norms; read every fourth time that weights are.",
)

PARAMETER_FAN_IN = Signal(
    "parameter.fan_in",
    Per.PARAMETER,
    Phase.DATA,
    "inputs",
    "Inputs that an output of the layer sums over; only of weights that linear, convolutional,"
    " recurrent and attention layers of torch apply as they are.",
    rare=True,
)
