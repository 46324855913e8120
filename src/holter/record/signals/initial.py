"""A model before its first step, layer by layer."""

from holter.record.signals._signal import Per, Phase, Signal

INIT_ACTIVATION_STD = Signal(
    "init.activation_std",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Standard deviation of the output of a module with its own parameters in one forward pass"
    " before training; a trial is a module, its step the place in the order of execution.",
)
INIT_WEIGHT_STD = Signal(
    "init.weight_std",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Standard deviation of a parameter of two or more dimensions before training.",
)
INIT_GRAD_RMS = Signal(
    "init.grad_rms",
    Per.TRIAL,
    Phase.BACKWARD,
    "",
    "Root mean square of the same parameter's gradient in one backward pass before training.",
)
