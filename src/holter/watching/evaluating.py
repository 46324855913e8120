"""Evaluation: tells validation losses from training losses, and follows train and eval mode."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from holter.watching.collectors.roster import Model
from holter.watching.passes import EvaluatedData
from holter.watching.taps import TappedLoss


class EvaluatedLoss(NamedTuple):
    """A loss that may be that of an evaluation, and the data it is computed on."""

    call: TappedLoss  # without its graph
    data: EvaluatedData
    items: Tensor | float | None = None  # that the script divides its sum by, where it says so


class Evaluation:
    """What is known of the modes of the models and of losses computed in eval mode.

    A loss with a graph in eval mode is undecided until the next backward: then it was trained on,
    if a model is still in eval mode, and a validation loss otherwise.
    """

    def __init__(self) -> None:
        self.is_on = False  # a model is in eval mode
        self.was_validated = False  # a validation loss was seen
        self._was_evaluated = False  # a model was put into eval mode
        # The last call of each loss function; one of each, because predictions may be large.
        self._undecided: dict[str, EvaluatedLoss] = {}
        self._modes: dict[int, bool] = {}

    @property
    def has_undecided(self) -> bool:
        """Whether a loss waits for the next backward."""
        return bool(self._undecided)

    @property
    def is_blind(self) -> bool:
        """Whether models were evaluated, but no loss function was called while they were."""
        return self._was_evaluated and not self.was_validated

    def look_at(self, models: Sequence[Model]) -> None:
        """See which of the models are in eval mode."""
        self.is_on = any(not model.module.training for model in models)

    def mode_changed(self, module: nn.Module) -> bool:
        """See a call of `train()` or `eval()`; return whether it changed the mode of the model."""
        self._was_evaluated |= not module.training
        if self._modes.get(id(module)) == module.training:
            return False
        self._modes[id(module)] = module.training
        return True

    def postpone(self, loss: EvaluatedLoss) -> EvaluatedLoss | None:
        """Keep a loss until it is decided; return the one that it proves a validation loss."""
        before = self._undecided.pop(loss.call.function, None)
        self._undecided[loss.call.function] = loss
        return before

    def take_undecided(self) -> list[EvaluatedLoss]:
        """Return the losses that are to be decided now."""
        losses, self._undecided = list(self._undecided.values()), {}
        return losses
