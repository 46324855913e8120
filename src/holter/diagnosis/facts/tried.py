"""A change that was tried on a training: how its repeats ended, and what that shows."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from holter.diagnosis.facts.cure_causes import CureCause, cause_of
from holter.record.findings import Confidence, Evidence
from holter.record.signals import CURE_LOSS

CONFIRMED = 2  # repeats that confirm a cure


class Effect(StrEnum):
    """What a change does to a training, beyond the noise of the unchanged one."""

    CURES = "cures"  # it learns
    HELPS = "helps"  # the loss ends lower
    NONE = "no effect"
    WORSE = "worse"
    IDLE = "nothing to change"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TrialEnd:
    """How one repeat of a trial ended."""

    repeat: int
    steps: int
    start: float
    level: float  # of the loss at the end; infinite if it is not finite
    bad: bool | None  # whether the outcome is poor; None if it cannot be judged
    constant: float | None = None  # loss of the best constant prediction, if known
    by_validation: bool = False  # whether the level is that of the validation loss

    def share(self, start: float) -> float:
        """Return the final level as a share of an initial loss."""
        return self.level / max(abs(start), 1e-30)


@dataclass(frozen=True, slots=True)
class TriedChange:
    """A change and its effect."""

    name: str
    effect: Effect
    ends: tuple[TrialEnd, ...] = ()
    gain: float = 0.0  # share by which the loss ends lower
    instead: float = math.nan  # the level of the unchanged training after as many steps
    failed: str = ""

    @property
    def cause(self) -> CureCause:
        """What it implies if it cures."""
        return cause_of(self.name)

    @property
    def level(self) -> float:
        """The median level of all repeats."""
        return float(np.median([end.level for end in self.ends])) if self.ends else math.nan

    @property
    def confirmed(self) -> bool:
        """Whether several repeats agree."""
        return len(self.ends) >= CONFIRMED

    @property
    def confidence(self) -> Confidence:
        """How sure the effect is."""
        if not self.confirmed:
            return Confidence.HINT
        return Confidence.LIKELY if self.cause.by_training else Confidence.CERTAIN

    @property
    def says(self) -> str:
        """The loss with and without the change."""
        if not self.ends:
            return self.failed
        repeats = f" ({len(self.ends)} repeats)" if len(self.ends) > 1 else ""
        own = [f"{end.level / max(abs(end.start), 1e-30):.0%}" for end in self.ends]
        if self.cause.rescales:
            return f"the loss ends at {own[0]} of its initial value{repeats}"
        if self.cause.by_training:
            true = _level(self.instead)
            return f"the training loss ends at {_level(self.level)}, with true labels at {true}"
        return f"the loss ends at {_level(self.level)} instead of {_level(self.instead)}{repeats}"

    @property
    def evidence(self) -> Evidence:
        """The loss curve of the changed training."""
        return Evidence(
            CURE_LOSS, (0, max(end.steps for end in self.ends) - 1), self.says, self.name
        )


def _level(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "NaN or infinity"
