"""What losses of distributions are given: kl_div, ctc_loss, binary_cross_entropy."""

from holter.record.signals._signal import Per, Phase, Signal

DISTRIBUTION_LOG_NORMALISER = Signal(
    "distribution.log_normaliser",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "",
    "Of the first argument of `kl_div` or `ctc_loss`: the median over rows of the log of the sum of"
    " exponentials, over the axis (or all axes) for which it is nearest to 0. It is 0 for"
    " log-probabilities.",
)
DISTRIBUTION_SUM = Signal(
    "distribution.sum",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "",
    "Of the first argument of `kl_div` or `ctc_loss`: the median over rows of the sum over the same"
    " axis; NaN where an element is below 0 or above 1. It is 1 for probabilities.",
)
DISTRIBUTION_MAX = Signal(
    "distribution.max",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "",
    "Largest element of the first argument of `kl_div` or `ctc_loss`: at most 0 for logarithms of"
    " probabilities, normalised or not.",
)
DISTRIBUTION_TARGET_SUM = Signal(
    "distribution.target_sum",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "",
    "Of the targets of `kl_div`, as probabilities: the median over rows of their sum over that axis"
    " for which it is nearest to 1. It is 1 for distributions.",
)
DISTRIBUTION_TARGET_MIN = Signal(
    "distribution.target_min",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "",
    "Smallest target of `kl_div`, as a probability.",
)
ALIGNMENT_IMPOSSIBLE_FRACTION = Signal(
    "alignment.impossible_fraction",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "share",
    "Share of the samples of `ctc_loss` whose input is shorter than its target: no alignment"
    " exists, and the loss is infinite, or 0 with `zero_infinity`.",
)
ALIGNMENT_BLANK_FRACTION = Signal(
    "alignment.blank_fraction",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "share",
    "Share of the targets of `ctc_loss` within their lengths that are the blank label.",
)
ALIGNMENT_FRAMES = Signal(
    "alignment.frames",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "",
    "Frames per sample in the input of `ctc_loss`, with padding.",
)
ALIGNMENT_USED = Signal(
    "alignment.used",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "share",
    "Largest input length of the samples of `ctc_loss`, as a share of the frames in its input.",
)
EXCLUSIVE_DISTANCE = Signal(
    "exclusive.distance",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "",
    "Of the probabilities of `binary_cross_entropy` for several labels: the largest distance of a"
    " sum over the labels from 1, over the axis for which it is smallest. It is 0 for a softmax.",
)
EXCLUSIVE_LABELS = Signal(
    "exclusive.labels",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "share",
    "Share of the targets, over the same axis, whose labels do not add up to 1.",
)
