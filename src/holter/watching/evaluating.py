"""Evaluation: tells validation losses from training losses, and follows train and eval mode."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from holter.watching.collectors.roster import Model
from holter.watching.nodes import number_of, reaches_back
from holter.watching.passes import EvaluatedData
from holter.watching.taps import TappedLoss


class EvaluatedLoss(NamedTuple):
    """A loss that may be that of an evaluation, and the data it is computed on."""

    call: TappedLoss  # without its graph
    data: EvaluatedData
    items: Tensor | float | None = None  # that the script divides its sum by, where it says so
    from_training: bool = False  # its predictions are outputs of a forward call of the training


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
        self.undecided: dict[str, EvaluatedLoss] = {}  # until the next backward
        self._modes: dict[int, bool] = {}
        self._last_trained = -1  # number of the newest node of the last backward

    def trained(self, roots: Sequence[Tensor]) -> None:
        """See what backward is called on."""
        for root in roots:
            if root.grad_fn is not None:
                self._last_trained = number_of(root.grad_fn)

    def is_from_training(self, call: TappedLoss) -> bool:
        """Return whether the predictions of a loss were made before the last backward began.

        They are outputs of the forward call that was trained on, in train mode: a script may keep
        them to compute a validation loss from the rows of other samples.
        """
        prediction = call.arguments.get("input")
        if not call.has_graph or self._last_trained < 0 or not isinstance(prediction, Tensor):
            return False
        return reaches_back(prediction, self._last_trained)

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
        before = self.undecided.pop(loss.call.function, None)
        self.undecided[loss.call.function] = loss
        return before

    def take_undecided(self) -> list[EvaluatedLoss]:
        """Return the losses that are to be decided now."""
        losses, self.undecided = list(self.undecided.values()), {}
        return losses
