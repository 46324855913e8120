"""What the replay of a capture reports."""

from dataclasses import dataclass
from typing import ClassVar

from holter.record.births import Birth
from holter.record.events._event import Occurrence


@dataclass(frozen=True, slots=True)
class WindowMeasure:
    """What one pass through the steps of a failure measured."""

    late_loss: float | None = None  # the median from the failing step on
    nonfinite_at: int | None = None  # the first step whose loss or gradient norm is not finite
    error: str = ""  # what ended it early
    onset_loss: float | None = None  # of the step with which the failure began


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
    normal_peak: float | None = None  # the highest of the later half of them
    unchanged: WindowMeasure = WindowMeasure()
    departs_at: int | None = None  # the first step whose loss is not the recorded one
    tensor: str = ""  # the parameter whose norm departs first
    suspects: tuple[str, ...] = ()  # what may have done it
    edited: tuple[str, ...] = ()  # parameters that the script writes to between steps
    fatal_before: str = ""  # by what it is known that the fatal update lies before the window
    bad: int = 1  # batches from the onset on that fail, the later ones on the oldest weights, too
    is_whole: bool = False  # the whole script ran again, not its extracted step


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
    outlies: bool | None = None  # its values, against those of the batches before
