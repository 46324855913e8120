"""What watching itself costs."""

from holter.record.signals._signal import Per, Phase, Signal

WATCH_TIME = Signal(
    "watch.time",
    Per.STEP,
    Phase.AFTERWARDS,
    "s",
    "Time that holter itself took of the step: on the host, or on the GPU if that is more or if"
    " the host ran ahead of it anyway.",
)

WATCH_DEVICE_TIME = Signal(
    "watch.device_time",
    Per.STEP,
    Phase.AFTERWARDS,
    "s",
    "Time that holter's own work took on a GPU during the step, by its clock.",
)
