"""Batches: how large they are, and what is in them."""

from holter.record.signals._signal import Per, Phase, Signal

DATA_BATCH_SIZE = Signal(
    "data.batch_size",
    Per.LOADER,
    Phase.DATA,
    "samples",
    "Samples that a loader delivered for the step, summed over micro-batches.",
)
DATA_BATCHES = Signal(
    "data.batches",
    Per.LOADER,
    Phase.DATA,
    "batches",
    "Batches that a loader delivered for the step: more than one under gradient accumulation.",
)
INPUT_MEAN = Signal(
    "input.mean",
    Per.MODEL,
    Phase.DATA,
    "",
    "Mean of the first floating-point argument of the model, in the first call with gradients"
    " enabled before the step's first backward; of a regular grid of at most 262144 of its"
    " elements; sampled. Only calls of whole models are seen, and not of compiled ones.",
)
INPUT_STD = Signal(
    "input.std",
    Per.MODEL,
    Phase.DATA,
    "",
    "Standard deviation of the same elements, divided by n; sampled.",
)
INPUT_ABSMAX = Signal(
    "input.absmax",
    Per.MODEL,
    Phase.DATA,
    "",
    "Largest absolute value in the same tensor, all elements; sampled.",
)
INPUT_OTHER_MEAN = Signal(
    "input.other_mean",
    Per.ARGUMENT,
    Phase.DATA,
    "",
    "Mean of a further floating-point argument of the same call, if it has several numbers per"
    " sample and was not computed by a trained weight; sampled.",
)
INPUT_OTHER_STD = Signal(
    "input.other_std",
    Per.ARGUMENT,
    Phase.DATA,
    "",
    "Standard deviation of the same elements, divided by n; sampled.",
)
INPUT_OTHER_ABSMAX = Signal(
    "input.other_absmax",
    Per.ARGUMENT,
    Phase.DATA,
    "",
    "Largest absolute value in the same tensor, all elements; sampled.",
)
INPUT_JOINED_STD = Signal(
    "input.joined_std",
    Per.ARGUMENT,
    Phase.FORWARD,
    "",
    "Largest standard deviation of a column of a linear layer's input that concatenates data with"
    " features of the model, such as numbers beside embeddings; read on a few steps.",
)
INPUT_JOINED_RATIO = Signal(
    "input.joined_ratio",
    Per.ARGUMENT,
    Phase.FORWARD,
    "ratio",
    "The same over the median standard deviation of its columns.",
)
INPUT_NONFINITE = Signal(
    "input.nonfinite",
    Per.MODEL,
    Phase.DATA,
    "elements",
    "Number of NaN and infinite values in the same tensor, all elements; read with gradients.",
)
INPUT_FINGERPRINT = Signal(
    "input.fingerprint",
    Per.MODEL,
    Phase.DATA,
    "",
    "A number made of the first tensor of that call, integers too, and of the places of its"
    " elements: equal batches have equal ones, others, and the same rows in another order, almost"
    " never. Not finite where the batch is not; read with gradients.",
)
INPUT_ELEMENTS = Signal(
    "input.elements",
    Per.MODEL,
    Phase.DATA,
    "elements",
    "Number of elements of the first tensor of that call; read with gradients.",
)
INPUT_TOKENS = Signal(
    "input.tokens",
    Per.STEP,
    Phase.DATA,
    "tokens",
    "Number of integers of shape (batch, length) passed to an embedding before the step's first"
    " backward, without those at its padding index or masked by the argument `attention_mask`;"
    " sampled in full steps.",
)
SAMPLE_ALIASED = Signal(
    "sample.aliased",
    Per.VARIABLE,
    Phase.DATA,
    "share",
    "Largest share of the last 64 elements of a list or deque, such as a replay buffer, that hold"
    " the same array or CPU tensor in one field as others do, where the content of such an array"
    " has changed since the last look and another field varies; 0 if there is none. Only of"
    " containers of at least 16 tuples, lists, dicts or dataclasses that were added to since the"
    " last look. Read when a full step calls backward().",
)
VAL_INPUT_MEAN = Signal(
    "val.input.mean",
    Per.MODEL,
    Phase.AFTERWARDS,
    "",
    "Mean of the first floating-point argument of the model, over the first four calls without"
    " gradients after it was put into eval mode (or else after the first validation loss), if a"
    " validation loss was computed; filed under the step of `val.loss`.",
)
VAL_INPUT_STD = Signal(
    "val.input.std",
    Per.MODEL,
    Phase.AFTERWARDS,
    "",
    "Standard deviation of the same elements, divided by n.",
)
VAL_INPUT_FINGERPRINT = Signal(
    "val.input.fingerprint",
    Per.MODEL,
    Phase.AFTERWARDS,
    "",
    "The fingerprint of the first of these calls, made as `input.fingerprint` is.",
)
