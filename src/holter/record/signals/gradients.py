"""Gradients, and how they are clipped and scaled."""

from holter.record.signals._signal import Per, Phase, Signal

GRAD_NORM = Signal(
    "grad.norm",
    Per.PARAMETER,
    Phase.BACKWARD,
    "",
    "L2 norm of the gradient: unscaled, before clipping, local to the rank (where it is sharded:"
    " of the shard); absent where no gradient arrived.",
)

GRAD_ABSMAX = Signal(
    "grad.absmax",
    Per.PARAMETER,
    Phase.BACKWARD,
    "",
    "Largest absolute value in the gradient: unscaled, before clipping, local to the rank.",
)

GRAD_NONFINITE = Signal(
    "grad.nonfinite",
    Per.PARAMETER,
    Phase.BACKWARD,
    "elements",
    "Number of NaN and infinite elements in the gradient.",
)

GRAD_ZERO_FRACTION = Signal(
    "grad.zero_fraction",
    Per.PARAMETER,
    Phase.BACKWARD,
    "share",
    "Share of the gradient's elements that are exactly zero.",
)

GRAD_TOTAL_NORM = Signal(
    "grad.total_norm",
    Per.OPTIMIZER,
    Phase.BACKWARD,
    "",
    "L2 norm over all gradients of the parameters one optimizer holds, before clipping; non-finite"
    " where any of them is, absent where none arrived. Of sharded gradients each rank records the"
    " norm of its shards, and rules see that of all ranks.",
)

GRAD_DISCARDED = Signal(
    "grad.discarded",
    Per.OPTIMIZER,
    Phase.BACKWARD,
    "passes",
    "Backward passes before the step whose gradients were cleared and used by no optimizer.",
)
GRAD_CARRIED_FRACTION = Signal(
    "grad.carried_fraction",
    Per.OPTIMIZER,
    Phase.BACKWARD,
    "share",
    "Share of a few watched parameters whose gradient of the optimizer's last step was still there,"
    " never cleared, when this one took place.",
)

CLIP_NORM = Signal(
    "clip.norm",
    Per.STEP,
    Phase.BACKWARD,
    "",
    "Total gradient norm that the script's clipping call measured, before clipping.",
)

CLIP_LIMIT = Signal(
    "clip.limit", Per.STEP, Phase.BACKWARD, "", "Limit given to the script's clipping call."
)

CLIP_COEFFICIENT = Signal(
    "clip.coefficient",
    Per.STEP,
    Phase.BACKWARD,
    "ratio",
    "Factor by which clipping scaled the gradients: 1 where the norm was under the limit.",
)

AMP_SCALE = Signal(
    "amp.scale", Per.STEP, Phase.BACKWARD, "", "Loss scale of the GradScaler during the step."
)

AMP_SKIPPED = Signal(
    "amp.skipped",
    Per.STEP,
    Phase.UPDATE,
    "0/1",
    "Whether the GradScaler skipped the optimizer's step for non-finite gradients.",
)
CLIP_SCALED = Signal(
    "clip.scaled",
    Per.STEP,
    Phase.BACKWARD,
    "0/1",
    "Whether the gradients were still multiplied by the AMP scale when they were clipped.",
)
CLIP_LATE = Signal(
    "clip.late",
    Per.STEP,
    Phase.AFTERWARDS,
    "0/1",
    "Whether gradients were clipped after the optimizer's step, with no backward in between; a"
    " limit of infinity, which only measures, does not count there.",
)
