"""What modules return, and the mode they are in."""

from holter.record.signals._signal import Per, Phase, Signal

ACTIVATION_MEAN = Signal(
    "activation.mean",
    Per.MODULE,
    Phase.FORWARD,
    "",
    "Mean of the module's output (its first floating-point tensor), over all elements of all its"
    " calls with gradients enabled before the step's first backward; in float32; sampled. Only"
    " modules without children have one: `F.relu` and the like are functions and are not seen, nor"
    " are modules that are compiled or scripted or run inside a reentrant checkpoint.",
)

ACTIVATION_STD = Signal(
    "activation.std",
    Per.MODULE,
    Phase.FORWARD,
    "",
    "Standard deviation (divided by n, about `activation.mean`) of the same elements; blind below"
    " about 1/3000 of the mean; sampled.",
)

ACTIVATION_ABSMAX = Signal(
    "activation.absmax",
    Per.MODULE,
    Phase.FORWARD,
    "",
    "Largest absolute value of the same elements; NaN where any of them is; sampled.",
)

ACTIVATION_DEAD_FRACTION = Signal(
    "activation.dead_fraction",
    Per.MODULE,
    Phase.FORWARD,
    "share",
    "Share of the units of a ReLU, ReLU6, Threshold, Softshrink or Hardshrink module, or of"
    " `F.relu` behind a layer (`relu(layer)`), that were zero for all samples of a window of"
    " sampled steps; written when the window ends, after 1024 samples or 4 steps. Behind"
    " convolutions a unit is a channel and a sample an entry of the batch; else a unit is an index"
    " of the last dimension, and each position is a sample.",
)

ACTIVATION_SATURATED_FRACTION = Signal(
    "activation.saturated_fraction",
    Per.MODULE,
    Phase.FORWARD,
    "share",
    "Share of a module's outputs that are saturated: Sigmoid under 0.01 or over 0.99, Tanh over"
    " 0.97 in magnitude, Hardsigmoid and Hardtanh at either bound, ReLU6 at 6; for Softmax the"
    " share of distributions whose largest probability is over 0.99; sampled. `torch.sigmoid`,"
    " `F.softmax` and attention are functions and not seen.",
)

MODE_TRAINING = Signal(
    "mode.training",
    Per.MODEL,
    Phase.FORWARD,
    "0/1",
    "Whether the model was in training mode when the step's backward began.",
)

MODE_EVAL_FRACTION = Signal(
    "mode.eval_fraction",
    Per.MODEL,
    Phase.FORWARD,
    "share",
    "Share of the dropout and batch-norm modules in trained parts of the model that were in eval"
    " mode when the step's backward began; absent where the model has none.",
)
NORMALISATION_SAMPLES = Signal(
    "normalisation.samples",
    Per.MODULE,
    Phase.FORWARD,
    "values",
    "Number of values per channel that a batch-norm module in training mode took its statistics"
    " from, in its first call of the step; of all ranks for SyncBatchNorm; sampled.",
)
NORMALISATION_INPUT_RMS = Signal(
    "normalisation.input_rms",
    Per.MODULE,
    Phase.FORWARD,
    "",
    "Root mean square of the input of a layer-norm or RMS-norm module (recognised by its class"
    " name) in its first call of the step: in pre-norm networks that is the residual stream;"
    " sampled.",
)
ATTENTION_LOGIT_ABSMAX = Signal(
    "attention.logit_absmax",
    Per.MODULE,
    Phase.FORWARD,
    "",
    "Largest absolute attention logit, of queries and keys of a few samples and positions, before"
    " masking; owned by the calls of `F.scaled_dot_product_attention` in their order, before the"
    " step's first backward and not in eval mode; sampled. Attention written by hand, compiled, or"
    " asked for its weights is not seen.",
)
ATTENTION_ENTROPY = Signal(
    "attention.entropy",
    Per.MODULE,
    Phase.FORWARD,
    "share",
    "Entropy of the attention of the same queries over those of the same keys that they may see,"
    " summed, over the largest sum possible; sampled.",
)
HIDDEN_NONFINITE = Signal(
    "hidden.nonfinite",
    Per.STEP,
    Phase.FORWARD,
    "elements",
    "Number of NaN and infinite elements that `torch.nan_to_num`, as function or method, replaced"
    " in what has a graph behind it in the step's forward passes, or in gradients of parameters;"
    " absent where it was called on nothing of this kind; sampled. What has no graph is data.",
)
