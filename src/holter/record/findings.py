"""What a rule may say of a run, and how sure it is of it."""

from dataclasses import dataclass
from enum import IntEnum

from holter.record.signals import Signal


class Severity(IntEnum):
    """How much a finding matters; ordered, so that it can be compared."""

    INFO = 0
    WARNING = 1
    ERROR = 2

    def __str__(self) -> str:
        return self.name.lower()


class Confidence(IntEnum):
    """How sure a finding is: one statistic, two independent signals, or a broken invariant."""

    HINT = 0
    LIKELY = 1
    CERTAIN = 2

    def __str__(self) -> str:
        return self.name.lower()


class Level(IntEnum):
    """Where a cause lies, in the order in which an engineer looks."""

    DATA = 0
    ARCHITECTURE = 1
    PROCEDURE = 2
    HYPERPARAMETER = 3
    NUMERICS = 4
    SYSTEM = 5

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Evidence:
    """A slice of one recorded signal, enough to redraw the picture behind a finding."""

    signal: Signal
    steps: tuple[int, int]
    says: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a run, and the evidence for it.

    A finding of a `preview` rule is at most a warning: it never fails a check.
    `explains` names rules whose findings are consequences of this one, where that differs from
    what the differential assumes of the rule. `confirmed_by` names the change to the training that
    removes the cause and restores learning. `place` is the file and line of the statement at fault,
    where the source shows it.
    """

    rule: str
    severity: Severity
    confidence: Confidence
    level: Level
    summary: str
    onset: int
    evidence: tuple[Evidence, ...]
    fix: str
    explains: tuple[str, ...] | None = None
    preview: bool = False
    confirmed_by: str = ""
    place: str = ""

    def __post_init__(self) -> None:
        if self.preview and self.severity > Severity.WARNING:
            object.__setattr__(self, "severity", Severity.WARNING)


@dataclass(frozen=True, slots=True)
class Normal:
    """Something that looks unusual and is not a fault, with the reason why.

    `exception` names the reason for which a rule whose condition holds does not report it.
    """

    rule: str
    summary: str
    evidence: tuple[Evidence, ...] = ()
    exception: str = ""


@dataclass(frozen=True, slots=True)
class Clear:
    """A condition that was looked for and is absent, and the measurement that says so."""

    rule: str
    because: str = ""


@dataclass(frozen=True, slots=True)
class NotExamined:
    """A rule that could not be applied, and why.

    `lacks` names signals that were not recorded, unless an experiment says why; `is_failure` if the
    reason is an internal error of holter.
    """

    rule: str
    because: str
    lacks: tuple[str, ...] = ()
    is_failure: bool = False


Verdict = Finding | Normal | Clear | NotExamined
