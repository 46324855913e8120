"""What experiments and cures report."""

from dataclasses import dataclass
from typing import Any, ClassVar

from holter.record.events._event import Occurrence


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


@dataclass(frozen=True, slots=True)
class OperationDiffered(Occurrence):
    """The first operation of a step whose result differs when the step is repeated."""

    kind: ClassVar[str] = "operation differed"
    operation: str
    phase: str  # "forward", "backward", "update"
    where: str = ""  # file and line
    line: str = ""  # its text
    module: str = ""
    cause: str = (
        "kernel"  # "kernel", "input" (it was given other values), "random" (it drew others)
    )
    elements: int = 0  # that differ
    of: int = 0
    ulps: float = 0.0


@dataclass(frozen=True, slots=True)
class NotDeterministic(Occurrence):
    """Torch has no deterministic algorithm for an operation of the step."""

    kind: ClassVar[str] = "not deterministic"
    error: str


@dataclass(frozen=True, slots=True)
class StateUnsaved(Occurrence):
    """Attributes of modules that differ after a checkpoint with every `state_dict()` is loaded."""

    kind: ClassVar[str] = "state unsaved"
    names: tuple[str, ...]
