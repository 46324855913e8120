"""Control experiments: what changes when one thing is changed on purpose."""

from holter.record.signals._signal import Per, Phase, Signal

MIXING_OWN = Signal(
    "mixing.own",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "How much the outputs of a sample change when its input is replaced by that of another sample:"
    " the largest change, in standard deviations of the outputs.",
)
MIXING_OTHERS = Signal(
    "mixing.others",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "How much the outputs of each other sample change then; one reading a sample, its number as"
    " the step.",
)
MIXING_MODULES = Signal(
    "mixing.modules",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "The same of what a module inside the model gives out: the largest change in other samples,"
    " with the place of the module in the order of execution as the step. Read only where the"
    " outputs of other samples change.",
)
MIXING_ROUNDING = Signal(
    "mixing.rounding",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "The change that may be rounding: of two equal calls, and of the data type.",
)
MIXING_SHUFFLED = Signal(
    "mixing.shuffled",
    Per.TRIAL,
    Phase.DATA,
    "",
    "1 if the order of samples in a batch means nothing: the training loader shuffles, or the"
    " sequence lies along another dimension; else 0.",
)
CAUSALITY_CHANGE = Signal(
    "causality.change",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "How much the outputs at each position change when the inputs at later positions are replaced:"
    " the largest change, in standard deviations of the outputs, with the position as the step. A"
    " trial is named after the inputs that were replaced: all from one position on, or one alone.",
)
CAUSALITY_LATER = Signal(
    "causality.later",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "How much the outputs at the replaced positions change themselves: the largest change.",
)
CAUSALITY_ROUNDING = Signal(
    "causality.rounding",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "The change that may be rounding: of two equal calls, and of the data type.",
)
CAUSALITY_MODULES = Signal(
    "causality.modules",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "The same change in what a module inside the model gives out at earlier positions, with the"
    " place of the module in the order of execution as the step. Read only for the first module in"
    " which anything changes.",
)
PADDING_CHANGE = Signal(
    "padding.change",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "How much the outputs of a sample change at its real positions when its padding is cut off, or"
    " filled with something else: the largest change, in standard deviations of the outputs.",
)
PADDING_START = Signal(
    "padding.start",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "The same change in the first half of the real positions alone, of outputs that have positions."
    " A convolution or a recurrence that reaches into padding changes outputs next to it only.",
)
PADDING_DECISIONS = Signal(
    "padding.decisions",
    Per.TRIAL,
    Phase.FORWARD,
    "fraction",
    "Share of the real positions of that sample whose largest output becomes another one, where the"
    " loss is given a class for each position.",
)
PADDING_AMOUNT = Signal(
    "padding.amount",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "The same change where a few positions of the padding are left.",
)
PADDING_LENGTH = Signal(
    "padding.length",
    Per.TRIAL,
    Phase.DATA,
    "positions",
    "How many positions of padding that sample has.",
)
PADDING_ROUNDING = Signal(
    "padding.rounding",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "The change that may be rounding: of the same sample in a batch of another size, and of the"
    " data type.",
)
PADDING_COUNTED = Signal(
    "padding.counted",
    Per.TRIAL,
    Phase.FORWARD,
    "fraction",
    "Share of the targets counted by the loss that are at padded positions.",
)
PADDING_WIDTHS = Signal(
    "padding.widths",
    Per.TRIAL,
    Phase.DATA,
    "lengths",
    "How many different padded lengths the first batches have.",
)
INPUT_RESPONSE = Signal(
    "input_control.response",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "How much the outputs change when inputs are replaced by those of another batch: the largest"
    " change, in standard deviations of the outputs; before any training as step 0, after some"
    " training as step 1. A trial is one input of the model, or all of them.",
)
INPUT_ROUNDING = Signal(
    "input_control.rounding",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "The change that may be rounding, at the same two moments.",
)
INPUT_LOSS = Signal(
    "input_control.loss",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Loss of one batch after some training on it: with its own inputs, and with those of another"
    " batch.",
)
EVAL_GAP_LOSS = Signal(
    "eval_gap.loss",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Loss of some batches that were trained on, a reading each: in train mode; in train mode with"
    " dropout off; with batch norm alone in eval mode besides; in eval mode.",
)
EVAL_GAP_START = Signal(
    "eval_gap.start",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Loss of the same batches before that training, in train mode with dropout off.",
)
EVAL_GAP_VARIANCE = Signal(
    "eval_gap.variance",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "By which factor the running variance of a batch norm differs from that of a batch, up or down:"
    " the median over channels and batches. Of the module with the largest.",
)
EVAL_GAP_VALUES = Signal(
    "eval_gap.values",
    Per.TRIAL,
    Phase.FORWARD,
    "values",
    "From how many values per channel that batch norm takes its statistics.",
)
EVAL_GAP_MOMENTUM = Signal(
    "eval_gap.momentum",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "The momentum of that batch norm.",
)
EVAL_GAP_DROPPED = Signal(
    "eval_gap.dropped",
    Per.TRIAL,
    Phase.FORWARD,
    "share",
    "Largest share of its values that dropout drops in train mode; the trial is the module that"
    " drops it. 0 if nothing is dropped but inputs that the model reconstructs.",
)
EVAL_DROPOUT = Signal(
    "eval_dropout.share",
    Per.TRIAL,
    Phase.FORWARD,
    "share",
    "Largest share that a dropout function drops while the model is in eval mode; a trial is a"
    " function, and 0 stands for a model that was looked at.",
)
ACCUMULATION_RESIDUAL = Signal(
    "accumulation.residual",
    Per.TRIAL,
    Phase.BACKWARD,
    "",
    "How far the gradient of a batch is from what its parts give, relative to its norm: from the"
    " mean over parts; from that mean on the best scale; from the mean weighted by numbers of"
    " targets; and from its own with samples in another order, which is rounding.",
)
ACCUMULATION_SCALE = Signal(
    "accumulation.scale",
    Per.TRIAL,
    Phase.BACKWARD,
    "",
    "By which factor the mean over parts comes closest to the gradient of the batch.",
)
ACCUMULATION_TARGETS = Signal(
    "accumulation.targets",
    Per.TRIAL,
    Phase.DATA,
    "targets",
    "Targets that the loss counts, by their weights, in each part of a batch, and in each of the"
    " batches that make one step.",
)
ACCUMULATION_BATCHES = Signal(
    "accumulation.batches",
    Per.TRIAL,
    Phase.BACKWARD,
    "batches",
    "Batches that make one step of the training.",
)
ACCUMULATION_DEVIATION = Signal(
    "accumulation.deviation",
    Per.TRIAL,
    Phase.BACKWARD,
    "",
    "How far the mean of the gradients of the batches of one step is from their mean weighted by"
    " numbers of targets, relative to its norm.",
)
LABEL_FIT = Signal(
    "label_control.fit",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Loss of each step of training on a few batches: with their labels, and with labels shuffled"
    " within each batch, from the same start.",
)
LABEL_HELD_OUT = Signal(
    "label_control.held_out",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Loss after that training of batches that were not trained on, with their own labels, in eval"
    " mode; a reading a batch.",
)
LABEL_SAMPLES = Signal(
    "label_control.samples",
    Per.TRIAL,
    Phase.DATA,
    "samples",
    "Samples that were held out.",
)
USE_CHANGE = Signal(
    "use.change",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "How much outputs change when one part of an input (a column, a position, a channel) is"
    " exchanged between samples: the largest change, in standard deviations of the outputs, with"
    " the number of the part as the step. Parts that are equal in all samples are left out.",
)
USE_SCALE = Signal(
    "use.scale",
    Per.TRIAL,
    Phase.DATA,
    "",
    "Standard deviation of each column of numbers of an input, by its place.",
)
USE_ROUNDING = Signal(
    "use.rounding",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "The change that may be rounding: of two equal calls, and of the data type.",
)
PAIRING_ROWS = Signal(
    "pairing.rows",
    Per.TRIAL,
    Phase.FORWARD,
    "share",
    "Share of the predictions that a cross-entropy is given whose scores are those of one place in"
    " what the model returned.",
)
PAIRING_SHIFT = Signal(
    "pairing.shift",
    Per.TRIAL,
    Phase.DATA,
    "",
    "By how many positions the targets follow the inputs, where they are the same tokens.",
)
PAIRING_ORDER = Signal(
    "pairing.order",
    Per.TRIAL,
    Phase.DATA,
    "",
    "1 if such targets are flattened in the order of the predictions, 0 if in another.",
)
PATH_CHANGE = Signal(
    "path.change",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "How much the predictions change when the weights of a module are perturbed that the graph of"
    " the predictions does not reach: the largest change, in their standard deviations.",
)
PATH_ROUNDING = Signal(
    "path.rounding",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "How much the predictions of two equal calls may differ by rounding.",
)
PATH_STOPS = Signal(
    "path.stops",
    Per.TRIAL,
    Phase.FORWARD,
    "count",
    "Calls of `detach()` in a forward pass, on tensors that have a gradient.",
)
PATH_CUTS = Signal(
    "path.cuts",
    Per.TRIAL,
    Phase.FORWARD,
    "count",
    "Calls of a function in a forward pass that were given a tensor with a gradient and returned"
    " one without, by the name of the function; `no_grad` stands for all calls inside of it.",
)
PAIRING_NOISE_ALIKE = Signal(
    "pairing.noise_alike",
    Per.TRIAL,
    Phase.DATA,
    "",
    "Where the model is given a tensor of the shape of its targets: median correlation between"
    " samples of the difference of the two.",
)
PAIRING_NOISE_WHITE = Signal(
    "pairing.noise_white",
    Per.TRIAL,
    Phase.DATA,
    "",
    "Largest correlation of neighbouring values of that difference within a sample, over its"
    " dimensions.",
)
