"""What models return, whatever the loss makes of it: how much it varies between samples."""

from holter.record.signals._signal import Per, Phase, Signal


def _signal(name: str, unit: str, doc: str) -> Signal:
    return Signal(f"response.{name}", Per.MODEL, Phase.FORWARD, unit, doc)


RESPONSE_SPREAD = _signal(
    "spread",
    "",
    "Standard deviation of a model's output across the samples of a batch, as a root mean square"
    " over its units: of the first call with gradients enabled before the step's first backward,"
    " for batches of at least four. An owner is a model, or a direct part of one that the script"
    " calls separately (`model.encoder`); `[1]` is the second tensor of its output; sampled. Of at"
    " most 4096 elements of each sample.",
)
RESPONSE_SIZE = _signal("size", "", "Root mean square of the same elements.")
RESPONSE_UNITS = _signal("units", "units", "Number of output elements per sample.")
RESPONSE_INPUT_SPREAD = _signal(
    "input_spread",
    "",
    "Standard deviation across the samples of the first floating-point tensor of that call, as a"
    " root mean square over its elements.",
)
RESPONSE_INPUT_UNITS = _signal(
    "input_units", "units", "Number of elements of that tensor in a sample."
)
