"""Batches: how large, how long waited for, what is in them."""

from holter.signals._signal import Per, Phase, Signal

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
    "Mean of the first floating-point tensor that the model was called with in training; sampled.",
)
INPUT_STD = Signal(
    "input.std",
    Per.MODEL,
    Phase.DATA,
    "",
    "Standard deviation of the same elements; sampled.",
)
INPUT_ABSMAX = Signal(
    "input.absmax",
    Per.MODEL,
    Phase.DATA,
    "",
    "Largest absolute value of the same elements; sampled.",
)
INPUT_NONFINITE = Signal(
    "input.nonfinite",
    Per.MODEL,
    Phase.DATA,
    "elements",
    "Number of NaN and infinite values among the same elements.",
)
INPUT_FINGERPRINT = Signal(
    "input.fingerprint",
    Per.MODEL,
    Phase.DATA,
    "",
    "A number made of the first tensor that the model was called with: equal batches have equal"
    " ones, others almost never.",
)
VAL_INPUT_MEAN = Signal(
    "val.input.mean",
    Per.MODEL,
    Phase.AFTERWARDS,
    "",
    "Mean of the first floating-point tensor that the model was called with, over a validation"
    " pass; sampled.",
)
VAL_INPUT_STD = Signal(
    "val.input.std",
    Per.MODEL,
    Phase.AFTERWARDS,
    "",
    "Standard deviation of the same elements; sampled.",
)
VAL_INPUT_FINGERPRINT = Signal(
    "val.input.fingerprint",
    Per.MODEL,
    Phase.AFTERWARDS,
    "",
    "The fingerprint of the first batch of a validation pass.",
)
