"""Where the time of a step goes, on the host and on a GPU; without the time of holter itself."""

from holter.record.signals._signal import Per, Phase, Signal

TIME_DATA_WAIT = Signal(
    "time.data_wait",
    Per.LOADER,
    Phase.DATA,
    "s",
    "Time the training loop waited for a loader's batches of the step.",
)
TIME_STEP = Signal(
    "time.step",
    Per.STEP,
    Phase.AFTERWARDS,
    "s",
    "Time from the end of the previous update to the end of this one, on the host, less the time"
    " that holter itself took.",
)
TIME_FORWARD = Signal(
    "time.forward",
    Per.STEP,
    Phase.FORWARD,
    "s",
    "Host time before each backward pass of the step: since the loader delivered the batch, or else"
    " since the previous update; less `time.checkpoint` and `time.garbage`. On a GPU it is the time"
    " to launch the work.",
)
TIME_BACKWARD = Signal(
    "time.backward",
    Per.STEP,
    Phase.BACKWARD,
    "s",
    "Host time inside backward(); on a GPU it is the time to launch the work.",
)
TIME_OPTIMIZER = Signal(
    "time.optimizer",
    Per.STEP,
    Phase.UPDATE,
    "s",
    "Host time inside optimizer.step(), less forward and backward passes of a closure.",
)
TIME_EVALUATION = Signal(
    "time.evaluation",
    Per.STEP,
    Phase.AFTERWARDS,
    "s",
    "Host time of validation passes between the previous update and this step: until the last"
    " validation loss; without a loss, from eval() to train() if another loader was read.",
)
TIME_CHECKPOINT = Signal(
    "time.checkpoint",
    Per.STEP,
    Phase.AFTERWARDS,
    "s",
    "Host time inside torch.save since the previous update.",
)
TIME_GARBAGE = Signal(
    "time.garbage",
    Per.STEP,
    Phase.AFTERWARDS,
    "s",
    "Time of full garbage collections (of the oldest generation) since the previous update.",
)
TIME_COMPILED_GRAPHS = Signal(
    "time.compiled_graphs",
    Per.STEP,
    Phase.FORWARD,
    "graphs",
    "Graphs that torch.compile has compiled since the previous update.",
)
TIME_DEVICE_FORWARD = Signal(
    "time.device_forward",
    Per.STEP,
    Phase.FORWARD,
    "s",
    "The time of `time.forward` by the clock of the GPU, gaps included; sampled, and filed under"
    " the step in which the clock was read.",
)
TIME_DEVICE_BACKWARD = Signal(
    "time.device_backward",
    Per.STEP,
    Phase.BACKWARD,
    "s",
    "The time of `time.backward` by the clock of the GPU; sampled in the same steps.",
)
TIME_DEVICE_OPTIMIZER = Signal(
    "time.device_optimizer",
    Per.STEP,
    Phase.UPDATE,
    "s",
    "The time of `time.optimizer` by the clock of the GPU; sampled in the same steps.",
)
TIME_DEVICE_IDLE = Signal(
    "time.device_idle",
    Per.STEP,
    Phase.UPDATE,
    "0/1",
    "1 if the GPU was done with the backward pass when the host had launched the update, else 0:"
    " on average, the share of steps in which it waited for the host.",
)
TIME_COPY = Signal(
    "time.copy",
    Per.STEP,
    Phase.DATA,
    "s",
    "Time of copies from the host to the GPU by `to()` and `cuda()`, by the clock of the GPU;"
    " sampled in full steps, and filed under the step in which the clock was read.",
)
TIME_SYNC = Signal(
    "time.sync",
    Per.STEP,
    Phase.AFTERWARDS,
    "s",
    "Host time inside calls that read a tensor of the GPU, such as item() and cpu(), since the"
    " previous update; sampled in full steps.",
)
SYNC_CALLS = Signal(
    "sync.calls",
    Per.STEP,
    Phase.AFTERWARDS,
    "calls",
    "Number of those calls.",
)
