"""What `holter try throughput` measures; a trial is named by what differs in it."""

from holter.record.signals._signal import Per, Phase, Signal

THROUGHPUT_STEP_TIME = Signal(
    "throughput.step_time",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "s",
    "Time of training steps: with batches from the `loader`, or with one `cached` batch.",
)
THROUGHPUT_WAIT = Signal(
    "throughput.wait",
    Per.TRIAL,
    Phase.DATA,
    "s",
    "Part of the steps with the `loader` that waits for its batches.",
)
THROUGHPUT_COPY = Signal(
    "throughput.copy",
    Per.TRIAL,
    Phase.DATA,
    "s",
    "Time to copy the tensors of one batch from the host to the GPU.",
)
THROUGHPUT_LOADING = Signal(
    "throughput.loading",
    Per.TRIAL,
    Phase.DATA,
    "s",
    "Time the loader takes for one batch if nothing is trained; a trial for each number of workers",
)
THROUGHPUT_BATCH_TIME = Signal(
    "throughput.batch_time",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "s",
    "Time of a step with a cached batch; a trial for each number of samples.",
)
THROUGHPUT_OPERATOR_TIME = Signal(
    "throughput.operator_time",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "s",
    "Time in a step of the operators that take most, without those that they call; on the GPU"
    " where there is one.",
)
THROUGHPUT_READS = Signal(
    "throughput.reads",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "calls",
    "Calls in a step that read a tensor on the host, such as item(); a trial for each line.",
)
THROUGHPUT_FLOPS = Signal(
    "throughput.flops",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "FLOP",
    "Floating-point operations of a `step`, and the `peak` of the GPU in one second, if known.",
)
