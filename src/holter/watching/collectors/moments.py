"""The moments of a training loop at which collectors of deeper steps may read."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.optim import Optimizer

from holter.watching.collectors.roster import Roster, Subject


class Depth(IntEnum):
    """How much of a step is read: what costs little, gradients too, or everything."""

    LIGHT = 1
    REGULAR = 2
    FULL = 3


class Joined(NamedTuple):
    """Models or optimizers have joined before a step that will be read to `depth`."""

    roster: Roster
    depth: Depth


class BackwardBegins(NamedTuple):
    """`backward()` was called on `roots`; `opens_step` if it is the first one after an update."""

    roots: tuple[Tensor, ...]  # free of the AMP scale
    opens_step: bool
    roster: Roster
    whole: bool = True  # False where only the gradients of some tensors were asked for


class GradientsReady(NamedTuple):
    """All gradients of a step are there, not yet clipped; still multiplied by `scale` if given."""

    subject: Subject
    scale: Tensor | None


class BeforeUpdate(NamedTuple):
    """`optimizer.step()` begins."""

    subject: Subject
    optimizer: Optimizer
    depth: Depth
    roster: Roster


class AfterUpdate(NamedTuple):
    """`optimizer.step()` has returned; what comes next belongs to a step read to `next_depth`."""

    subject: Subject
    roster: Roster
    depth: Depth
    next_depth: Depth


class CheckpointRead(NamedTuple):
    """`torch.load` returned something, before the training began."""

    content: object


class WeightsLoaded(NamedTuple):
    """`load_state_dict` of a module was given a state, before the training began."""

    module: nn.Module
    state: Any


class LossComputed(NamedTuple):
    """A loss function was called on what will be trained on if a backward follows."""

    function: str
    loss: Tensor  # as it was reduced
    samples: int
    arguments: Mapping[str, Any]  # of the function, by name
    is_whole: bool = True  # False where backward is known to be called on further terms


class ValidationLoss(NamedTuple):
    """A loss function was called on a batch that is evaluated."""

    function: str
    loss: Tensor  # as it was reduced
    samples: int
    arguments: Mapping[str, Any]  # of the function, by name
    has_graph: bool
    data: str  # the name of what is evaluated
    split: str  # train, validation or test, as far as it is known
    roster: Roster
    items: Tensor | float | None = None  # that the script divides a sum by, where it says so
    from_training: bool = False  # its predictions are outputs of a forward call of the training


class EvaluationBegins(NamedTuple):
    """A model was put into eval mode."""

    roster: Roster


class NonfiniteReplaced(NamedTuple):
    """`torch.nan_to_num` is called on `tensor`; `ahead` if the step it is of has not begun."""

    tensor: Tensor
    ahead: bool
    roster: Roster


class Rectified(NamedTuple):
    """A ReLU that is no module has returned `output`, before the first backward of a step."""

    output: Tensor


class Attended(NamedTuple):
    """`F.scaled_dot_product_attention` was called, before the first backward of a step."""

    query: Tensor
    key: Tensor
    mask: Tensor | None
    is_causal: bool
    scale: float | None


class Logged(NamedTuple):
    """The training loop passed values to `log()`."""

    values: Mapping[str, Tensor]


class StepEnds(NamedTuple):
    """Everything of a step has happened; `subjects` are those whose optimizers were stepped."""

    subjects: Sequence[Subject]
    in_eval: bool  # a model is in eval mode, and it ends with a backward: that is training, too


class Closing(NamedTuple):
    """The watch closes: whatever is attached to the model has to go."""


Moment = (
    Joined
    | BackwardBegins
    | GradientsReady
    | BeforeUpdate
    | AfterUpdate
    | CheckpointRead
    | WeightsLoaded
    | LossComputed
    | ValidationLoss
    | EvaluationBegins
    | NonfiniteReplaced
    | Attended
    | Rectified
    | Logged
    | StepEnds
    | Closing
)
