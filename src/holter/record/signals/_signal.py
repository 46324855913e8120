"""A signal: a quantity that can be recorded, and what is known of it beforehand."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Per(StrEnum):
    """What one reading of a signal belongs to."""

    STEP = "step"
    OPTIMIZER = "optimizer"
    GROUP = "group"
    MODEL = "model"
    ARGUMENT = "argument"  # of a model
    LOADER = "loader"
    LOSS_FUNCTION = "loss function"
    LOSS_TERM = "loss term"
    METRIC = "metric"  # under the name that the script gives it
    PARAMETER = "parameter"
    MODULE = "module"
    VARIABLE = "variable"  # of the training loop
    TRIAL = "trial"  # one variant of an experiment, with steps of its own


class Phase(IntEnum):
    """When in a step a signal is read: of two signals of one step, the earlier moved first."""

    DATA = 0
    FORWARD = 1
    BACKWARD = 2
    UPDATE = 3
    AFTERWARDS = 4


@dataclass(frozen=True, slots=True)
class Signal:
    """A quantity that can be recorded. `rare` ones are written when they change, or at few steps.

    A histogram has several `bins`: so many values are one reading.
    """

    name: str
    per: Per
    phase: Phase
    unit: str
    doc: str
    rare: bool = False
    bins: int = 1

    @property
    def stream(self) -> str:
        """The family of segment files that holds this signal."""
        if self.bins > 1:
            return "histograms"
        if self.per is Per.MODULE:
            return "modules"
        if self.per is Per.TRIAL:
            return "trials"
        if self.per is not Per.PARAMETER:
            return "steps"
        return "facts" if self.rare else "parameters"

    def __str__(self) -> str:
        return self.name
