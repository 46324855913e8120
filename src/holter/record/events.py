"""Events: what happened once in a run, with a class for each kind.

`kind` is the name of an event in `events.jsonl`, and the fields of its class are its fields there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from holter.record.births import Birth
from holter.record.typed import from_json, to_json


class Occurrence:
    """What an event says, without its time."""

    __slots__ = ()
    kind: ClassVar[str]


What = TypeVar("What", bound=Occurrence)
What_co = TypeVar("What_co", bound=Occurrence, covariant=True)


@dataclass(frozen=True, slots=True)
class Event(Generic[What_co]):
    """An occurrence, the step that was open, and the time."""

    step: int
    wall: float
    what: What_co

    def to_json(self) -> dict[str, Any]:
        """Return the line of `events.jsonl`."""
        if isinstance(self.what, Unknown):
            kind, data = self.what.name, self.what.data
        else:
            kind, data = self.what.kind, to_json(self.what)
        return {"step": self.step, "wall": self.wall, "kind": kind, **data}

    @staticmethod
    def of(line: Mapping[str, Any]) -> "Event[Occurrence]":
        """Read a line of `events.jsonl`; raises if it lacks step, time or kind."""
        step, wall, kind = int(line["step"]), float(line["wall"]), str(line["kind"])
        cls = KINDS.get(kind)
        if cls is not None:
            return Event(step, wall, from_json(cls, line))
        data = {key: value for key, value in line.items() if key not in ("step", "wall", "kind")}
        return Event(step, wall, Unknown(kind, data))


@dataclass(frozen=True, slots=True)
class Unknown(Occurrence):
    """An event of another version of holter."""

    kind: ClassVar[str] = ""
    name: str  # its kind
    data: Mapping[str, Any]


# A training.


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
class Resumed(Occurrence):
    """A run is continued."""

    kind: ClassVar[str] = "resume"


@dataclass(frozen=True, slots=True)
class ExceptionRaised(Occurrence):
    """An exception ended the training."""

    kind: ClassVar[str] = "exception"
    type: str
    message: str
    where: str | None = None


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


# Experiments.


@dataclass(frozen=True, slots=True)
class ExperimentsChosen(Occurrence):
    """`holter try` begins these experiments."""

    kind: ClassVar[str] = "tried"
    experiments: tuple[str, ...] = ()
    seconds: float = 0.0  # that it took to run the script and to extract its step


@dataclass(frozen=True, slots=True)
class ExperimentMade(Occurrence):
    """An experiment is over."""

    kind: ClassVar[str] = "experiment"
    experiment: str
    seconds: float


@dataclass(frozen=True, slots=True)
class NotApplicable(Occurrence):
    """An experiment, or a part of it, could not be made; or a watch cannot see some signals."""

    kind: ClassVar[str] = "not applicable"
    experiment: str
    why: str
    signals: tuple[str, ...]  # that are not recorded therefore


@dataclass(frozen=True, slots=True)
class ExperimentFailed(Occurrence):
    """An experiment raised an exception that it does not know: an internal error."""

    kind: ClassVar[str] = "experiment failed"
    experiment: str
    error: str
    signals: tuple[str, ...]  # that are not recorded therefore


@dataclass(frozen=True, slots=True)
class OutOfTime(Occurrence):
    """An experiment ended before this trial, for lack of time."""

    kind: ClassVar[str] = "out of time"
    experiment: str
    trial: str


@dataclass(frozen=True, slots=True)
class TrialFailed(Occurrence):
    """A trial of an experiment raised an exception."""

    kind: ClassVar[str] = "trial failed"
    trial: str
    why: str


@dataclass(frozen=True, slots=True)
class CureTried(Occurrence):
    """A training was repeated under a change; the recording of it is a run of its own."""

    kind: ClassVar[str] = "cure tried"
    trial: str
    repeat: int  # 0 has the random numbers of the recorded run
    folder: str  # of the recording, inside the run
    steps: int  # asked for
    seconds: float
    altered: int  # times the change altered anything; 0 if there was nothing to change
    failed: str = ""  # why there is no recording


@dataclass(frozen=True, slots=True)
class OverfitFloor(Occurrence):
    """What the lowest possible loss of a batch was computed from, or why it is unknown."""

    kind: ClassVar[str] = "overfit floor"
    trial: str
    because: str = ""
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class LrRangeNote(Occurrence):
    """A remark on a learning-rate range test."""

    kind: ClassVar[str] = "lr-range note"
    note: str


@dataclass(frozen=True, slots=True)
class LrRangeStop(Occurrence):
    """A sweep of a learning-rate range test ended."""

    kind: ClassVar[str] = "lr-range stop"
    trial: str
    why: str  # "end", "diverged", "not finite", "skipped"
    rate: float | None


@dataclass(frozen=True, slots=True)
class SampleShown(Occurrence):
    """A sample of a data set, as text."""

    kind: ClassVar[str] = "sample"
    split: str
    index: int
    inputs: str
    targets: str


@dataclass(frozen=True, slots=True)
class SamplesFound(Occurrence):
    """Samples in which a problem of a data set shows."""

    kind: ClassVar[str] = "samples found"
    what: str
    split: str | None = None  # None: the problem is between two splits
    indices: tuple[Any, ...] = ()  # numbers, or groups of them
    pairs: tuple[Any, ...] = ()  # of a sample in each split


@dataclass(frozen=True, slots=True)
class MixingModule(Occurrence):
    """The first module in which one sample changes the output of others."""

    kind: ClassVar[str] = "mixing module"
    module: str
    type: str
    batch_norm: bool = False
    batch_first: bool | None = None
    dim: int | None = None


# Replays of a capture.


@dataclass(frozen=True, slots=True)
class WindowMeasure:
    """What one pass through the steps of a failure measured."""

    late_loss: float | None = None  # the median from the failing step on
    nonfinite_at: int | None = None  # the first step whose loss or gradient norm is not finite
    error: str = ""  # what ended it early


@dataclass(frozen=True, slots=True)
class Reproduced(Occurrence):
    """A replay was compared with what was recorded; other events of the replay follow."""

    kind: ClassVar[str] = "reproduction"
    verdict: str
    says: str
    failing: int  # the step that fails
    onset: int  # the step from which on it went wrong
    state_step: int  # the first step of the window
    alarm: str
    same: int = 0  # steps whose loss is the recorded one to the bit
    compared: int = 0
    repeatable: bool = False
    normal_loss: float | None = None  # the median before the failure
    normal_spread: float | None = None
    unchanged: WindowMeasure = WindowMeasure()
    departs_at: int | None = None  # the first step whose loss is not the recorded one
    tensor: str = ""  # the parameter whose norm departs first
    suspects: tuple[str, ...] = ()  # what may have done it
    edited: tuple[str, ...] = ()  # parameters that the script writes to between steps
    fatal_before: str = ""  # by what it is known that the fatal update lies before the window


@dataclass(frozen=True, slots=True)
class BirthFound(Occurrence):
    """A replay found where the first value that is not finite comes from."""

    kind: ClassVar[str] = "birth"
    birth: Birth
    failing: int


@dataclass(frozen=True, slots=True)
class ChangeTried(Occurrence):
    """A replay with one change, or why it does not apply."""

    kind: ClassVar[str] = "change tried"
    name: str
    why_not: str = ""
    measure: WindowMeasure = WindowMeasure()


@dataclass(frozen=True, slots=True)
class ChangesTried(Occurrence):
    """All changes of a replay were tried."""

    kind: ClassVar[str] = "all changes tried"


@dataclass(frozen=True, slots=True)
class TriageMade(Occurrence):
    """Whether the batch fails on older weights, and an older batch on these."""

    kind: ClassVar[str] = "triage"
    batch_on_older_weights: bool | None = None
    older_batch_on_these_weights: bool | None = None
    samples: tuple[int, ...] = ()  # that fail by themselves


_ALL: tuple[type[Occurrence], ...] = (
    *(LoaderSeen, PassBegan, PassOrder, EvaluationSeen, OptimizerSeen, SchedulerSeen, ModeChanged),
    *(SkippedStep, Resumed, ExceptionRaised, HolterFailed, CaptureWritten, ExperimentsChosen),
    *(ExperimentMade, NotApplicable, ExperimentFailed, OutOfTime, TrialFailed, OverfitFloor),
    *(LrRangeNote, LrRangeStop, SampleShown, SamplesFound, MixingModule, Reproduced, BirthFound),
    *(ChangeTried, ChangesTried, TriageMade, BatchInspected, WeightsEdited, HandwrittenLoss),
    *(GradientsUnapplied, CureTried),
)
KINDS: Mapping[str, type[Occurrence]] = {cls.kind: cls for cls in _ALL}
