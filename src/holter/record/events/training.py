"""What happens in a training."""

from dataclasses import dataclass
from typing import ClassVar

from holter.record.events._event import Occurrence


@dataclass(frozen=True, slots=True)
class LoaderSeen(Occurrence):
    """A data loader is iterated over for the first time."""

    kind: ClassVar[str] = "loader"
    loader: str
    batches: int | None = None
    batch_size: int | None = None
    workers: int = 0
    shuffled: bool = False
    drop_last: bool = False
    order: str = ""  # "sequential", "shuffled", or "" where the script decides it
    pinned: bool = False
    persistent: bool = False  # its workers stay for the next pass
    samples: int | None = None  # that the data set says it has
    drawable: int | None = None  # samples that a sampler with weights can draw
    iterable: bool = False  # the data set is a stream


@dataclass(frozen=True, slots=True)
class PassBegan(Occurrence):
    """A pass over a data loader begins."""

    kind: ClassVar[str] = "pass"
    loader: str


@dataclass(frozen=True, slots=True)
class PassOrder(Occurrence):
    """The order of the first batches of a pass, as one number; None where they do not differ."""

    kind: ClassVar[str] = "order"
    loader: str
    batches: int  # that it is made of
    steps: int  # that were trained meanwhile
    inputs: int | None = None
    labels: int | None = None


@dataclass(frozen=True, slots=True)
class PassLabels(Occurrence):
    """How often each class label was read in a pass over a training loader.

    For integer labels, one a sample; told of the first passes.
    """

    kind: ClassVar[str] = "labels"
    loader: str
    counts: tuple[tuple[int, int], ...]  # label and count, the most frequent first
    others: int = 0  # labels beyond those listed


@dataclass(frozen=True, slots=True)
class OptimizerSeen(Occurrence):
    """An optimizer joins the training."""

    kind: ClassVar[str] = "optimizer"
    optimizer: str  # its label
    type: str  # its class


@dataclass(frozen=True, slots=True)
class EvaluationSeen(Occurrence):
    """Losses without a backward pass are computed on some data, for the first time.

    Told again when it turns out that the data are trained on.
    """

    kind: ClassVar[str] = "evaluation"
    name: str  # of the data, as in the owners of validation signals; empty for the first without
    split: str = ""  # train, validation or test, if the script names it
    by_value: bool = False  # the name is the value of a variable, which may say something else
    trained_on: bool = False
    where: str = ""  # file and line
    loader: str = ""


@dataclass(frozen=True, slots=True)
class GradientsUnapplied(Occurrence):
    """The training ended, and no optimizer has ever stepped."""

    kind: ClassVar[str] = "gradients unapplied"
    backwards: int  # calls of backward
    optimizer: str = ""


@dataclass(frozen=True, slots=True)
class HandwrittenLoss(Occurrence):
    """The script computes a loss itself that amounts to a torch loss function, for the first time.

    What it is given is recorded under the name of that function.
    """

    kind: ClassVar[str] = "handwritten loss"
    function: str
    where: str = ""  # file and line that call backward


@dataclass(frozen=True, slots=True)
class CopyCompared(Occurrence):
    """A copy of the trained model that the script leaves, beside the model.

    Distances are shares of the way that the model has made since its first step.
    """

    kind: ClassVar[str] = "copy"
    model: str  # its class
    behind: float  # distance of the copy from the model
    moved: float  # distance of the copy from the weights that the model began with
    written: int  # writes to the weight of the copy that was written to least
    unset_norms: int = 0  # batch norms in eval mode with initial statistics, unlike the model's


@dataclass(frozen=True, slots=True)
class StatisticsCompared(Occurrence):
    """The running statistics of a batch norm after the training, beside those of a batch.

    Of the module that is the furthest from the batch.
    """

    kind: ClassVar[str] = "running statistics"
    module: str
    norms: int  # batch norms in train mode
    updates: int  # of its running statistics
    left: float  # share of their initial values in them
    momentum: float | None
    mean: float  # distance of the running mean from the batch's, in standard deviations
    variance: float  # factor by which the running variance differs, up or down
    unexplained: float  # share of these distances that is there without the initial values, too


@dataclass(frozen=True, slots=True)
class FigurePrinted(Occurrence):
    """A number that the script prints, each time after the same words."""

    kind: ClassVar[str] = "figure"
    name: str  # the words before it, in lower case
    steps: tuple[int, ...]  # of training that were over
    values: tuple[float, ...]  # per cent as shares


@dataclass(frozen=True, slots=True)
class StateLoaded(Occurrence):
    """`load_state_dict` of a module was given a state."""

    kind: ClassVar[str] = "state loaded"
    module: str  # its class, and a number that is the same for each load of one module
    found: int  # names of the state that the module has
    missing: int  # names of the module that the state has not
    unexpected: int  # names of the state that the module has not
    renamed: int = 0  # missing names that the state has with other first parts
    example: tuple[str, ...] = ()  # a missing name and an unexpected one
    where: str = ""  # file and line
    of_step: int | None = None  # of this training: an evaluation after it was of the same weights
    own: int = 0  # names of the state that hold the module's own memory, once training has begun


@dataclass(frozen=True, slots=True)
class SchedulerSeen(Occurrence):
    """A learning-rate scheduler is stepped for the first time."""

    kind: ClassVar[str] = "scheduler"
    scheduler: str  # its class
    early: bool = False  # stepped before any optimizer was
    position: int | None = None  # calls it has seen, with those of an earlier run
    horizon: int | None = None  # calls
    gamma: float | None = None
    step_size: int | None = None
    milestones: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RateCut(Occurrence):
    """ReduceLROnPlateau lowers the learning rate for a metric that it finds no better."""

    kind: ClassVar[str] = "rate cut"
    mode: str  # min or max: what it takes for better
    metric: float
    before: float  # the learning rate
    after: float
    given: tuple[float, ...] = ()  # the metrics since the last cut, the last one included


@dataclass(frozen=True, slots=True)
class ModeChanged(Occurrence):
    """A model goes from training to eval mode, or back."""

    kind: ClassVar[str] = "mode"
    model: str
    training: bool


@dataclass(frozen=True, slots=True)
class SkippedStep(Occurrence):
    """An optimizer step was skipped, by a loss scaler unless `by` names another."""

    kind: ClassVar[str] = "skipped step"
    optimizer: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class WeightsEdited(Occurrence):
    """The script wrote to parameters between two updates, for the first time to these."""

    kind: ClassVar[str] = "weights edited"
    of: int  # the step before which they were edited
    parameters: tuple[str, ...]  # the first of them
    count: int
    where: str = ""  # file and line of the update that follows


@dataclass(frozen=True, slots=True)
class BatchInspected(Occurrence):
    """The batch of the first step that went wrong was looked at afterwards."""

    kind: ClassVar[str] = "batch"
    of: int  # the step
    loader: str
    nonfinite: int  # NaN and infinities in it
    elements: int  # floating-point numbers in it


@dataclass(frozen=True, slots=True)
class ResultsKept(Occurrence):
    """A variable of the training loop holds results of earlier steps, and grows."""

    kind: ClassVar[str] = "results kept"
    variable: str  # as in the owners of `graph.kept` and `memory.held`
    where: str = ""  # file and line that adds to it
    code: str = ""  # that line
    is_sum: bool = False  # a tensor that is added to, rather than a container


@dataclass(frozen=True, slots=True)
class DeviceRead(Occurrence):
    """The script reads a tensor of the GPU, which waits for it; told once for each line."""

    kind: ClassVar[str] = "device read"
    call: str  # item, cpu, ...
    where: str  # file and line


@dataclass(frozen=True, slots=True)
class MemoryExhausted(Occurrence):
    """An allocation failed, and ended the training."""

    kind: ClassVar[str] = "memory exhausted"
    device: str  # cuda or cpu
    requested: int | None = None  # bytes
    capacity: int | None = None  # of the device
    allocated: int | None = None  # in tensors
    reserved: int | None = None  # by the allocator
    # What held most, the largest first: names, and bytes in the same order.
    holders: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    where: str = ""  # file and line of the script


@dataclass(frozen=True, slots=True)
class Resumed(Occurrence):
    """A run is continued."""

    kind: ClassVar[str] = "resume"


@dataclass(frozen=True, slots=True)
class RolledBack(Occurrence):
    """A run is continued from a checkpoint that is older than its end, at the step of the event.

    Readers leave out what was recorded of that step and later ones before `opened`.
    """

    kind: ClassVar[str] = "rollback"
    steps: int  # that were recorded before
    opened: float  # time at which the recording was continued


@dataclass(frozen=True, slots=True)
class ExceptionRaised(Occurrence):
    """An exception ended the training."""

    kind: ClassVar[str] = "exception"
    type: str
    message: str
    where: str | None = None


@dataclass(frozen=True, slots=True)
class VariablesNonfinite(Occurrence):
    """Tensors that held NaN or infinity where an exception ended the training."""

    kind: ClassVar[str] = "nonfinite variables"
    names: tuple[str, ...]
    where: str  # file and line


@dataclass(frozen=True, slots=True)
class HolterFailed(Occurrence):
    """A part of holter failed; training went on without it."""

    kind: ClassVar[str] = "holter failed"
    where: str
    error: str
    trace: str


@dataclass(frozen=True, slots=True)
class CaptureWritten(Occurrence):
    """The black box wrote a capture."""

    kind: ClassVar[str] = "capture"
    alarm: str
    of: int  # the step of the alarm
    path: str


@dataclass(frozen=True, slots=True)
class AxisMoved(Occurrence):
    """A reshape by the script gives a dimension other elements."""

    kind: ClassVar[str] = "axis moved"
    where: str  # file and line
    before: tuple[int, ...]  # shapes
    after: tuple[int, ...]
