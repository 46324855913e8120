"""The moments of a training loop at which collectors may read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.optim import Optimizer

from holter.collectors.roster import Roster, Subject


@dataclass(frozen=True, slots=True)
class BackwardBegins:
    """`backward()` was called on `roots`; `opens_step` if it is the first one after an update."""

    roots: tuple[Tensor, ...]  # free of the AMP scale
    opens_step: bool
    roster: Roster


@dataclass(frozen=True, slots=True)
class BackwardEnds:
    """`backward()` has returned."""


@dataclass(frozen=True, slots=True)
class GradientsReady:
    """All gradients of a step are there, not yet clipped; still multiplied by `scale` if given."""

    subject: Subject
    scale: Tensor | None


@dataclass(frozen=True, slots=True)
class Clipped:
    """The script clipped gradients by norm (`norm` given) or by value."""

    norm: Tensor | None
    limit: float


@dataclass(frozen=True, slots=True)
class BeforeUpdate:
    """`optimizer.step()` begins. On `sampled` steps dear signals are read too."""

    subject: Subject
    optimizer: Optimizer
    sampled: bool
    roster: Roster


@dataclass(frozen=True, slots=True)
class AfterUpdate:
    """`optimizer.step()` has returned."""

    subject: Subject


@dataclass(frozen=True, slots=True)
class ScalerStepped:
    """A GradScaler stepped an optimizer, or skipped its step for non-finite gradients."""

    scale: Tensor
    skipped: bool


@dataclass(frozen=True, slots=True)
class SchedulerStepped:
    """A learning-rate scheduler was stepped."""


@dataclass(frozen=True, slots=True)
class BatchFetched:
    """A loader delivered a batch."""

    loader: str
    samples: int
    waited: float


@dataclass(frozen=True, slots=True)
class ValidationLoss:
    """A loss function was called on a validation batch."""

    function: str
    loss: Tensor
    samples: int


@dataclass(frozen=True, slots=True)
class Logged:
    """The training loop passed values to `log()`."""

    values: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class StepEnds:
    """Everything of a step has happened; `subjects` are those whose optimizers were stepped."""

    subjects: Sequence[Subject]


Moment = (
    BackwardBegins
    | BackwardEnds
    | GradientsReady
    | Clipped
    | BeforeUpdate
    | AfterUpdate
    | ScalerStepped
    | SchedulerStepped
    | BatchFetched
    | ValidationLoss
    | Logged
    | StepEnds
)
