"""What repetitions of one step from the same state showed."""

from dataclasses import dataclass

import numpy as np

from holter.record import Run
from holter.record.events import NotDeterministic, OperationDiffered
from holter.record.signals import DETERMINISM_ELEMENTS, DETERMINISM_SECONDS, DETERMINISM_ULPS
from holter.record.trials import TrialKind

PARTS = ("loss", "gradients", "weights")
DETERMINISTIC = str(TrialKind.DETERMINISTIC)


@dataclass(frozen=True, slots=True)
class Part:
    """How much a part of a step's result differs between repetitions."""

    name: str
    repeats: int
    differing: int  # repetitions that differ from the first pass
    elements: int  # in the worst of them
    ulps: float

    @property
    def says(self) -> str:
        """The difference in words."""
        size = "other shapes" if np.isinf(self.ulps) else f"at most {self.ulps:,.0f} ulps"
        return (
            f"{self.differing} of {self.repeats} repetitions ({self.elements:,} elements, {size})"
        )


@dataclass(frozen=True, slots=True)
class Repetition:
    """A step and its repetitions, as the training is and with deterministic algorithms."""

    parts: tuple[Part, ...]
    deterministic: tuple[Part, ...]
    operation: OperationDiffered | None
    refused: str  # torch's sentence where it has no deterministic algorithm
    seconds: tuple[float, float] | None  # a step as it is, and with deterministic algorithms

    @property
    def count(self) -> int:
        """Number of repetitions."""
        return max((part.repeats for part in self.parts), default=0)

    @property
    def differing(self) -> tuple[Part, ...]:
        """The parts that differ, in the order of a step."""
        return tuple(part for part in self.parts if part.differing)

    @property
    def cause(self) -> str:
        """Whether a kernel differs, or what it is given."""
        return "kernel" if self.operation is None else self.operation.cause

    @property
    def is_cured(self) -> bool:
        """Whether nothing differs with deterministic algorithms."""
        return bool(self.deterministic) and not any(part.differing for part in self.deterministic)

    @property
    def price(self) -> str:
        """What deterministic algorithms cost, in words; empty where it was not measured."""
        if self.seconds is None:
            return ""
        now, then = self.seconds
        return f"{1e3 * then:.3g} ms instead of {1e3 * now:.3g} ms, {100 * (then / now - 1):+.0f} %"


def repetition(run: Run) -> Repetition:
    """Return what `holter try determinism` measured."""
    operations, refused = run.events_of(OperationDiffered), run.events_of(NotDeterministic)
    return Repetition(
        tuple(part for name in PARTS if (part := _part(run, name, name)) is not None),
        tuple(
            part
            for name in PARTS
            if (part := _part(run, name, f"{name} · {DETERMINISTIC}")) is not None
        ),
        operations[-1].what if operations else None,
        refused[-1].what.error if refused else "",
        _seconds(run),
    )


def _part(run: Run, name: str, trial: str) -> Part | None:
    elements = run[DETERMINISM_ELEMENTS].get(trial)
    ulps = run[DETERMINISM_ULPS].get(trial)
    if elements is None or ulps is None or not len(elements):
        return None
    return Part(
        name,
        len(elements),
        int((elements.values > 0).sum()),
        int(elements.values.max()),
        float(ulps.values.max()),
    )


def _seconds(run: Run) -> tuple[float, float] | None:
    if DETERMINISM_SECONDS not in run:
        return None
    taken = run[DETERMINISM_SECONDS]
    trials = (str(TrialKind.UNCHANGED), DETERMINISTIC)
    if any(trial not in taken for trial in trials):
        return None
    now, then = (float(np.median(taken[trial].values)) for trial in trials)
    return now, then
