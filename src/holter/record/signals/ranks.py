"""What is compared between the processes of a distributed training."""

from holter.record.signals._signal import Per, Phase, Signal

WEIGHT_HASH = Signal(
    "weight.hash",
    Per.PARAMETER,
    Phase.UPDATE,
    "",
    "24 bits of a 64-bit hash of the parameter's bits before the update, in processes of a"
    " torch.distributed group. It is read at steps that depend on the step number alone, so that"
    " equal parameters have equal values on all ranks; absent where a parameter is sharded.",
    rare=True,
)
