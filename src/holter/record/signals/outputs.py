"""What the loss function is given: predictions and targets, while training."""

from holter.record.signals._signal import Per, Phase, Signal

OUTPUT_MIN = Signal(
    "output.min",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "",
    "Smallest prediction passed to the loss function. Like all signals of outputs and targets it"
    " is read only in some steps; for very large predictions the other signals use evenly spaced"
    " samples.",
)

OUTPUT_MAX = Signal(
    "output.max",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "",
    "Largest prediction passed to the loss function.",
)

OUTPUT_SPREAD = Signal(
    "output.spread",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "",
    "Standard deviation of the prediction across the samples of the batch, as a root mean square"
    " over its units: near 0 if the model returns the same for every input. For losses over"
    " classes every position is a sample; absent for a single sample.",
)

OUTPUT_SIZE = Signal(
    "output.size",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "",
    "Root mean square of the prediction, over all samples and units.",
)

OUTPUT_PROBABILITY_FRACTION = Signal(
    "output.probability_fraction",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "share",
    "Share of the samples whose predictions are probabilities: for losses over classes none"
    " negative and their sum 1, for losses of single logits all between 0 and 1.",
)

OUTPUT_LOG_PROBABILITY_FRACTION = Signal(
    "output.log_probability_fraction",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "share",
    "Share of the samples whose predictions over the classes are logarithms of probabilities:"
    " none positive, and the sum of their exponentials 1.",
)

OUTPUT_LOG_NORMALISER = Signal(
    "output.log_normaliser",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "",
    "Mean over samples of the log of the sum of exponentials over the classes: the log Z of a"
    " softmax.",
)

OUTPUT_UNITS = Signal(
    "output.units",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "units",
    "Number of units of a prediction: the classes, for losses over classes; else the elements of"
    " one sample.",
)

ACCURACY = Signal(
    "accuracy",
    Per.LOSS_FUNCTION,
    Phase.FORWARD,
    "share",
    "Training accuracy of the step: share of the targets predicted by the largest output (for"
    " two-class losses: the sign of the logit, or 0.5), without ignored targets.",
)

TARGET_ENTROPY = Signal(
    "target.entropy",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "nats",
    "Entropy of all class labels seen in training so far: the loss of predicting the class"
    " frequencies, under the class weights and label smoothing of the loss function. In losses of"
    " single logits, the mean over their units; absent if each element has its own weight.",
)

TARGET_BATCH_ENTROPY = Signal(
    "target.batch_entropy",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "nats",
    "Entropy of the class labels of the step alone, under the same weights; absent in losses of"
    " several logits a sample.",
)

TARGET_CLASSES = Signal(
    "target.classes",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "classes",
    "Number of distinct classes seen among the labels so far.",
)

TARGET_WEIGHT_SLOPE = Signal(
    "target.weight_slope",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "",
    "Slope of the logarithm of the class weights (`weight`, `pos_weight`) over the logarithm of how"
    " often each class was a target so far: -1 where weights are the inverse frequencies, 1 where"
    " they are the frequencies. For a `pos_weight` of several labels, one slope for the two classes"
    " of all of them.",
)

TARGET_WEIGHT_AWAY = Signal(
    "target.weight_away",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "share",
    "Share of the labels of a binary loss whose `pos_weight` adds to their imbalance: below 1 for a"
    " label that is rarely positive, above 1 for one that mostly is. Of the labels positive in"
    " less than 40 % or more than 60 % of the targets so far.",
)

TARGET_COUNT = Signal(
    "target.count",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "targets",
    "Number of targets of the step, without ignored ones.",
)

TARGET_LARGEST_CLASS_FRACTION = Signal(
    "target.largest_class_fraction",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "share",
    "Share of the most frequent class among all labels seen so far: the accuracy of always"
    " predicting it. In losses of single logits, the mean over their units.",
)

TARGET_IGNORED_FRACTION = Signal(
    "target.ignored_fraction",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "share",
    "Share of the step's targets that the loss function ignores.",
)

TARGET_MEAN = Signal(
    "target.mean",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "",
    "Mean of all numeric targets seen in training so far.",
)

TARGET_STD = Signal(
    "target.std",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "",
    "Standard deviation of all numeric targets seen so far, about the mean of each unit: its"
    " square is the squared error of always predicting the mean.",
)

TARGET_MIN = Signal(
    "target.min",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "",
    "Smallest numeric target of the step.",
)

TARGET_MAX = Signal(
    "target.max",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "",
    "Largest numeric target of the step.",
)

TARGET_BROADCAST = Signal(
    "target.broadcast",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "0/1",
    "Whether an elementwise loss broadcast prediction and target to more elements than either"
    " has, as it does (N, 1) and (N,).",
)

TARGET_INPUT_MATCH = Signal(
    "target.input_match",
    Per.LOSS_FUNCTION,
    Phase.DATA,
    "share",
    "Share of the targets that equal the model's own input at the same place: the last input of"
    " its embedding with as many entries as there are classes; absent if there is none, or if the"
    " shapes differ. For real-valued targets, the share that equals a part of the input series (3"
    " dimensions): the most similar variables, at the last positions.",
)
