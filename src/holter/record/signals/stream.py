"""The samples that a training loader delivers, pass by pass."""

from holter.record.signals._signal import Per, Phase, Signal


def _signal(name: str, unit: str, doc: str) -> Signal:
    return Signal(f"stream.{name}", Per.LOADER, Phase.DATA, unit, doc)


STREAM_SAMPLES = _signal(
    "samples",
    "samples",
    "Samples that a loader delivered for training in the pass that ended at this step.",
)
STREAM_READ = _signal(
    "read",
    "samples",
    "Those of them whose contents were read: batches on the host, as many as the budget allows."
    " The other signals of the stream are of these.",
)
STREAM_DISTINCT = _signal(
    "distinct",
    "samples",
    "Distinct samples among those read in the pass, inputs and targets together; of up to 1024"
    " elements of each tensor of a sample. Beyond 4096 an estimate, with an error of 1.6 %.",
)
STREAM_SEEN = _signal(
    "seen",
    "samples",
    "Distinct samples among all read from the loader so far, counted in the same way.",
)
STREAM_COLLAPSED = _signal(
    "collapsed",
    "share",
    "Share of the batches read in the pass in which all samples have the same inputs, bit by bit:"
    " the largest tensors of the batch. Of batches of at least four samples.",
)
STREAM_MEAN = _signal(
    "mean",
    "",
    "Mean of the first floating-point tensor of the batches in the pass, or else of images in"
    " bytes; of up to 4096 elements a batch.",
)
STREAM_STD = _signal("std", "", "Standard deviation of the same elements.")
STREAM_MIN = _signal("min", "", "Smallest of the same elements.")
STREAM_MAX = _signal("max", "", "Largest of the same elements.")
STREAM_VALUES = _signal(
    "values",
    "",
    "Distinct numbers among 64 of these elements of each batch, over the whole pass: few for"
    " inputs that are codes, such as boards and one-hot categories. Of tokens if these are the"
    " inputs.",
)
STREAM_TOKENS = _signal(
    "tokens",
    "",
    "Elements of a sample whose inputs are whole numbers, such as tokens and categories.",
)
STREAM_IGNORED = _signal(
    "ignored",
    "share",
    "Share of the last integer tensor of the batches that is -100, which cross-entropy ignores, or"
    " of an attention mask that is 0.",
)
