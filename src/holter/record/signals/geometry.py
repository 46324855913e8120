"""The loss around the weights: curvature, norms and noise of gradients."""

from holter.record.signals._signal import Per, Phase, Signal

SHARPNESS_EIGENVALUE = Signal(
    "sharpness.eigenvalue",
    Per.TRIAL,
    Phase.BACKWARD,
    "",
    "Largest eigenvalue of the Hessian of the loss on fixed batches; the trial `preconditioned` is"
    " that of the Hessian as the optimizer's steps see it, with the scale of each weight's step.",
)
SHARPNESS_RESIDUAL = Signal(
    "sharpness.residual",
    Per.TRIAL,
    Phase.BACKWARD,
    "ratio",
    "Relative residual of that eigenvalue: its possible error.",
)
SHARPNESS_BOUND = Signal(
    "sharpness.bound",
    Per.TRIAL,
    Phase.UPDATE,
    "",
    "Eigenvalue above which steps of this optimizer at its learning rate overshoot more each time:"
    " 2 / lr for plain SGD, (2 + 2 momentum) / lr with momentum, 38 / lr for Adam with beta1 0.9.",
)
SHARPNESS_RATE = Signal(
    "sharpness.rate",
    Per.TRIAL,
    Phase.UPDATE,
    "",
    "Learning rate at which the bound was computed; of several the highest.",
)
SHARPNESS_DESCENT = Signal(
    "sharpness.descent",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Loss on the same batches before each of some steps on them, with the learning rate `as set`"
    " and `reduced` to half of what the bound allows.",
)
SHARPNESS_START = Signal(
    "sharpness.start",
    Per.TRIAL,
    Phase.FORWARD,
    "steps",
    "Training steps before the curvature was measured.",
)
SHARPNESS_DISTANCE = Signal(
    "sharpness.distance",
    Per.TRIAL,
    Phase.FORWARD,
    "ratio",
    "Distance of the weights along a random direction that is normalised filter by filter.",
)
SHARPNESS_LOSS = Signal(
    "sharpness.loss",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Loss in eval mode at each of these distances; a trial is a direction.",
)
SHARPNESS_PLANE = Signal(
    "sharpness.plane",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Loss in eval mode on a square of two such directions, row by row, at the distances of the"
    " trial `plane`.",
)

CLIP_THRESHOLD_NORM = Signal(
    "clip_threshold.norm",
    Per.TRIAL,
    Phase.BACKWARD,
    "",
    "Global gradient norm of a training step before any clipping; of several losses each is a"
    " trial.",
)
CLIP_THRESHOLD_LIMIT = Signal(
    "clip_threshold.limit",
    Per.TRIAL,
    Phase.BACKWARD,
    "",
    "Norm to which the training clips its gradients; missing where it does not.",
)
CLIP_THRESHOLD_LOSS = Signal(
    "clip_threshold.loss",
    Per.TRIAL,
    Phase.FORWARD,
    "",
    "Loss of these steps with the limit `as set` and, where it cuts nearly all, from the same start"
    " with the limit that is `advised`.",
)

BATCH_SIZE = Signal(
    "batch.size",
    Per.TRIAL,
    Phase.DATA,
    "samples",
    "Samples of one training step, accumulation included.",
)
BATCH_NOISE_SCALE = Signal(
    "batch.noise_scale",
    Per.TRIAL,
    Phase.BACKWARD,
    "samples",
    "Gradient noise scale: trace of the gradients' covariance over the squared norm of their mean,"
    " by the training steps made before; `lower` and `upper` are the ends of a bootstrap interval"
    " of 95 %.",
)
BATCH_LARGEST = Signal(
    "batch.largest",
    Per.TRIAL,
    Phase.DATA,
    "samples",
    "Largest batch that fits into memory: `tried` by doubling it, `estimated` from the memory that"
    " a sample takes, or `at least` where the largest that was tried still fits.",
)
