"""Data sets looked at directly, sample by sample."""

from holter.record.signals._signal import Per, Phase, Signal


def _signal(name: str, unit: str, doc: str) -> Signal:
    return Signal(name, Per.TRIAL, Phase.DATA, unit, doc)


DATASET_LENGTH = _signal(
    "dataset.length",
    "samples",
    "Samples that the loader of a split (`train`, `valid`) can serve; of streams those examined.",
)
DATASET_EXAMINED = _signal(
    "dataset.examined", "samples", "Samples of a split that were read, chosen at random."
)
DATASET_DISTINCT = _signal(
    "dataset.distinct", "samples", "Distinct inputs among the examined samples of a split."
)
DATASET_DUPLICATES = _signal(
    "dataset.duplicates",
    "share",
    "Share of the examined samples of a split whose input is that of another one of them, bit by"
    " bit.",
)
DATASET_REPEATED = _signal(
    "dataset.repeated",
    "share",
    "Share of the distinct inputs of a split that occur more than once among those examined. Only"
    " where samples have positions: batches may be drawn from the same ones again and again.",
)
DATASET_CONFLICTS = _signal(
    "dataset.conflicts",
    "share",
    "Share of the examined samples of a split whose input occurs with another class as well.",
)
DATASET_VALUES = _signal(
    "dataset.values",
    "",
    "Distinct numbers among at most 64 elements of each examined input of a split. Only of"
    " floating-point inputs, and of images in bytes: tokens may repeat by chance, however many.",
)
DATASET_DIMENSIONS = _signal(
    "dataset.dimensions", "", "Dimensions of the largest array in an input: 1 for a row of a table."
)
DATASET_MEAN = _signal(
    "dataset.mean", "", "Mean of all elements of the largest array in the inputs, where finite."
)
DATASET_STD = _signal("dataset.std", "", "Standard deviation of the same elements.")
DATASET_ABSMAX = _signal("dataset.absmax", "", "Largest absolute value of the same elements.")
DATASET_OVERLAP = _signal(
    "dataset.overlap",
    "share",
    "Share of the examined validation samples that are among the examined training samples, bit"
    " by bit: by their `inputs`, and by `inputs and targets`.",
)
DATASET_SHARED_POSITIONS = _signal(
    "dataset.shared_positions",
    "share",
    "Share of all validation samples that are served by training too, by their positions in the"
    " data both are parts of: `same` data set, or two `alike` that hold the same data.",
)
DATASET_NONFINITE = _signal(
    "dataset.nonfinite",
    "samples",
    "Examined samples with NaN or infinity: in `train inputs`, `train targets`, `valid inputs`,"
    " `valid targets`.",
)
DATASET_NONFINITE_LOSS = _signal(
    "dataset.nonfinite_loss",
    "",
    "Whether the loss of a batch of the split that holds NaN or infinity is not finite: 1 or 0.",
)
DATASET_CLASS = _signal(
    "dataset.class", "", "The classes of a split in rising order: targets that are whole numbers."
)
DATASET_CLASS_COUNT = _signal(
    "dataset.class_count",
    "samples",
    "Examined samples of each of these classes, as often as the loader serves them.",
)
DATASET_CLASS_WEIGHTS = _signal(
    "dataset.class_weights", "", "Whether the loss function is given weights of classes: 1 or 0."
)
DATASET_LABEL_CHANGES = _signal(
    "dataset.label_changes",
    "share",
    "How often the class changes from one sample to the next, against a random order: near 0 for"
    " data sorted by class. Only of loaders that serve samples in the order of the data set.",
)
DATASET_OUTPUTS = _signal(
    "dataset.outputs", "classes", "Classes for which the loss function is given scores."
)
DATASET_OUT_OF_RANGE = _signal(
    "dataset.out_of_range",
    "samples",
    "Examined samples of a split with a class that the loss function has no score for.",
)
DATASET_COLUMN_VALUES = _signal(
    "dataset.column_values",
    "",
    "Distinct values of a column of a table; the step is the column index.",
)
DATASET_COLUMN_CONSTANT = _signal(
    "dataset.column_constant", "", "The value of a column that has only one; NaN for others."
)
DATASET_COLUMN_ZEROS = _signal(
    "dataset.column_zeros", "share", "Share of the examined samples in which a column is 0."
)
DATASET_COLUMN_RESIDUE = _signal(
    "dataset.column_residue",
    "share",
    "Share of the target's variance that the best line through one column leaves: 0 where column"
    " and target are the same up to scale and shift.",
)
DATASET_COLUMN_ORDER = _signal(
    "dataset.column_order",
    "",
    "How well the order of one column gives that of the target: the absolute rank correlation, or"
    " for two classes 2 AUC - 1. Not of more than two classes.",
)
DATASET_COLUMN_INFORMATION = _signal(
    "dataset.column_information",
    "share",
    "Share of the target's entropy explained by one column, in any relation: mutual information of"
    " the column and the class, or the number in 8 bins, less what permuted targets give.",
)
DATASET_PAIR_ORDER = _signal(
    "dataset.pair_order",
    "",
    "How well the best linear combination of two columns gives the order of the target, as"
    " `dataset.column_order`; then that of the best two among the other columns.",
)
DATASET_NEAR_OVERLAP = _signal(
    "dataset.near_overlap",
    "share",
    "Share of the examined validation samples that are almost equal to an examined training sample"
    " without being equal: their distance is below 5 % of that to the tenth nearest. Of up to 64"
    " elements of floating-point inputs and images, with an intrinsic dimension of at least 2.5.",
)
DATASET_KEY_SHARED = _signal(
    "dataset.key_shared",
    "share",
    "Share of the examined validation samples that have a group of training, or a time between its"
    " times. The trial is `group` or `time` and the name of the column.",
)
DATASET_KEY_SCORE = _signal(
    "dataset.key_score",
    "",
    "How well the nearest training input predicts the target of a validation sample (share of"
    " correct classes beyond those of the most frequent one, or R²): with all of training, without"
    " samples of the same group or time, and without as many by permuted groups or times.",
)
DATASET_COLUMN_COPY = _signal(
    "dataset.column_copy",
    "",
    "What a column is of the class: 2 if it has one value for each class, 1 if it tells one class"
    " from all others by two values, else 0.",
)
REFETCH_SAMPLES = _signal(
    "refetch.samples", "samples", "Samples of a split that were fetched twice by the same index."
)
REFETCH_INPUTS = _signal(
    "refetch.inputs", "share", "Share of these samples whose inputs differ between the two times."
)
REFETCH_TARGETS = _signal(
    "refetch.targets",
    "share",
    "Share of these samples whose targets differ; not of samples without targets.",
)
REFETCH_TARGETS_LIKE_INPUTS = _signal(
    "refetch.targets_like_inputs",
    "share",
    "Share of these samples whose target has the shape of the input.",
)
REFETCH_NEARER = _signal(
    "refetch.nearer",
    "share",
    "Of the samples that differ, the share in which the two are nearer to one another than to most"
    " others: element by element, with or without brightness and contrast, or in the distribution"
    " of their values.",
)
REFETCH_WITHIN_CLASSES = _signal(
    "refetch.within_classes",
    "",
    "Whether these others were of the same class: 1, or 0 where too few were met. Not of targets"
    " that are not classes.",
)
REFETCH_UNEXPLAINED = _signal(
    "refetch.unexplained",
    "share",
    "Share of the samples that differ between two fetches although all known random states were"
    " the same.",
)
REFETCH_WANDERING = _signal(
    "refetch.wandering",
    "times",
    "How much more versions of a sample differ that are several fetches apart than successive ones:"
    " 1 if they are independent, more if each is made of the one before.",
)
REFETCH_JUDGED = _signal(
    "refetch.judged",
    "pairs",
    "Pairs of successive versions of a training sample in which the flips and rotations of input"
    " and of dense target are both clear, and one of them is not the identity.",
)
REFETCH_TORN = _signal(
    "refetch.torn",
    "share",
    "Share of these pairs in which input and target are flipped or rotated differently.",
)
REFETCH_OWN = _signal(
    "refetch.own",
    "share",
    "Share of the training samples that differ between two fetches although the generators of"
    " torch, numpy and random were in the same state: the data set has its own generator.",
)
WORKERS = _signal("workers.count", "", "Workers of the training loader.")
WORKERS_PERSISTENT = _signal(
    "workers.persistent", "", "Whether they go on in the next epoch: 1 or 0."
)
WORKERS_INIT = _signal("workers.init", "", "Whether the loader has a `worker_init_fn`: 1 or 0.")
WORKERS_DRAWS = _signal("workers.draws", "samples", "Samples that two real workers fetched each.")
WORKERS_ALIKE = _signal(
    "workers.alike", "share", "Share of these samples that are the same in both workers."
)
WORKERS_EPOCHS_ALIKE = _signal(
    "workers.epochs_alike",
    "share",
    "Share of the samples of the first worker that are the same when the workers are restarted.",
)
DATASET_MISPAIRED = _signal(
    "dataset.mispaired",
    "share",
    "Share of 16 samples whose inputs and targets come from different samples in the batch that the"
    " `collate_fn` makes of them.",
)
DATASET_OWN_SCALE = _signal(
    "dataset.own_scale",
    "",
    "Whether a data set holds numbers whose columns have exactly mean 0 and standard deviation 1:"
    " they were standardised by their own statistics. The trial is the split.",
)
DATASET_DEPENDENCE = _signal(
    "dataset.dependence",
    "",
    "How targets depend on inputs: the share of their variance that the five nearest samples"
    " predict, the highest such share for targets permuted 19 times, the share that the best single"
    " column explains, and the highest of permuted targets.",
)
DATASET_COLUMN_SHIFT = _signal(
    "dataset.column_shift",
    "",
    "Of each column of a table, or channel of images: how far its mean in validation is from that"
    " in training, in standard deviations of training; 0 if the difference is below eight standard"
    " errors.",
)
DATASET_COLUMN_RATIO = _signal(
    "dataset.column_ratio",
    "",
    "Of each column: its standard deviation in validation over training.",
)
DATASET_COLUMN_ORIGIN = _signal(
    "dataset.column_origin",
    "",
    "Of each column of validation: its number, or that of the column of training which it is, if"
    " the columns of validation are in another order.",
)
DATASET_ALIGNMENT = _signal(
    "dataset.alignment",
    "share",
    "Share of the entropy of the labels of a sequence that the token two and one positions before,"
    " at, and one and two positions after the label tells.",
)
DATASET_COLUMN_TRANSFER = _signal(
    "dataset.column_transfer",
    "share",
    "Of each column: the share of the variance of the targets that the mean target of its values"
    " (or bins), learned from training samples, predicts. Trials: `train`, of training samples that"
    " were left out; `valid`, of validation samples; `error`, the standard error between both.",
)
DATASET_WINDOW_OVERLAP = _signal(
    "dataset.window_overlap",
    "share",
    "Share of the validation samples that hold a quarter of a training sample or more, bit by bit,"
    " at another place: windows that overlap.",
)
DATASET_REWRITTEN = _signal(
    "dataset.rewritten",
    "share",
    "Share of eight samples whose stored numbers change when the data set is asked for"
    " the sample: an augmentation that works in place. The trial is the split.",
)
DATASET_COLUMN_PLACEHOLDER = _signal(
    "dataset.column_placeholder",
    "share",
    "Of each column: the share of samples that share a value far outside the range of all others,"
    " such as 999999 for a missing one; 0 if there is no such value.",
)
