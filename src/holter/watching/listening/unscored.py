"""UnscoredPasses: evaluation passes in which the script computes no loss, only predictions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.graphs.nodes import place_of
from holter.watching.collectors.graphs.outputs import kept_at
from holter.watching.collectors.inputs import roots
from holter.watching.collectors.roster import Roster
from holter.watching.evaluating import EvaluatedLoss
from holter.watching.passes import Passes
from holter.watching.taps import TappedLoss

_MOST_CLASSES = 1000
_FUNCTIONS = ("cross_entropy", "nll_loss")
_DEFAULTS = {"weight": None, "ignore_index": -100, "reduction": "mean", "label_smoothing": 0.0}


@dataclass(frozen=True, slots=True)
class _Trained:
    """The loss of classes that the training uses: its function, and the number of classes."""

    function: str
    classes: int


class UnscoredPasses:
    """Puts the outputs of a model beside the labels of the batch, and computes the training's loss.

    A batch counts if it is given to the model once, holds one tensor of labels, and no loss
    function is called before the next batch. Outputs have to be what the loss function takes.
    """

    def __init__(self, passes: Passes) -> None:
        self.is_on = False  # batches are fetched for an evaluation
        self._passes = passes
        self._calls: Calls[str] = Calls(self._heard, self._returned)
        self._trained: _Trained | None = None
        self._scored: set[str] = set()  # loaders whose batches the script computes losses on
        self._label, self._step = "", 0
        self._labels: list[Tensor] = []  # tensors of the batch that may be the labels
        self._waiting: EvaluatedLoss | None = None
        self._is_suitable: bool | None = None  # the first outputs are what the loss function takes

    def trained(self, function: str, arguments: Mapping[str, Any]) -> None:
        """See a loss that is trained on: is it that of classes, given what a model returned?

        In steps that are read whole, outputs of models are marked in the graph.
        """
        scores = arguments.get("input")
        if function not in _FUNCTIONS or not isinstance(scores, Tensor) or not _is_plain(arguments):
            self._trained = None
        elif (place := place_of(scores)) is not None and kept_at(place) is not None:
            few = 2 <= scores.shape[1] <= _MOST_CLASSES
            self._trained = _Trained(function, scores.shape[1]) if few else None

    def fetched(self, label: str, batch: Any, step: int, roster: Roster) -> EvaluatedLoss | None:
        """See a batch of an evaluation; return the loss of the one before, if it had none."""
        before = self.take()
        self._label, self._step = label, step
        self._labels = []
        if self._trained is None or self._is_suitable is False or label in self._scored:
            return before
        self._check()
        if not self.is_on:
            if any(is_compiled(model.module) for model in roster.models):
                return before
            self.is_on = True
            self._calls.know(roots(roster))
            self._calls.listen()
        self._labels = [tensor for tensor in _leaves(batch) if _is_labels(tensor)]
        return before

    def scored(self) -> None:
        """See a loss that the script computes in an evaluation."""
        self._scored.add(self._label)
        self.end()

    def end(self) -> EvaluatedLoss | None:
        """Return the loss of the last batch once the evaluation is over."""
        self._calls.stop()
        self.is_on, self._labels = False, []
        return self.take()

    def take(self) -> EvaluatedLoss | None:
        """Return the loss that waits, if any."""
        waiting, self._waiting = self._waiting, None
        return waiting

    def _check(self) -> None:
        try:
            self._calls.check()
        except Exception:
            self._is_suitable = False  # never again
            raise

    def _heard(self, *_: Any) -> bool:
        """Whether there is nothing to learn from the output of this call."""
        return not self._labels or torch.is_grad_enabled()

    def _returned(self, _: str, __: nn.Module, ___: tuple[Any, Any], output: Any) -> None:
        scores = output.get("logits") if isinstance(output, Mapping) else output
        trained = self._trained
        if trained is None or not isinstance(scores, Tensor) or not scores.is_floating_point():
            return
        if scores.dim() != 2 or scores.shape[1] != trained.classes:
            return
        fitting = [target for target in self._labels if _fits(target, scores)]
        if len(fitting) != 1:
            return
        if self._waiting is not None:  # the model is called again on the same batch
            self._waiting, self._labels = None, []
            return
        if self._is_suitable is None:
            self._is_suitable = _is_suitable(trained.function, scores)
        if self._is_suitable:
            self._waiting = self._loss(trained, scores, fitting[0])

    @torch.no_grad()
    def _loss(self, trained: _Trained, scores: Tensor, labels: Tensor) -> EvaluatedLoss:
        target = labels.reshape(-1).long().to(scores.device, non_blocking=True)
        shares = scores.float()
        if trained.function == "cross_entropy":
            shares = shares.log_softmax(1)
        loss = -shares.gather(1, target[:, None]).mean()
        # A copy: scripts change predictions in place.
        arguments = {"input": scores.detach().clone(), "target": target, **_DEFAULTS}
        call = TappedLoss(trained.function, loss, len(scores), has_graph=False, arguments=arguments)
        return EvaluatedLoss(call, self._passes.data_of(call, self._step, evaluating=True))


def _is_plain(arguments: Mapping[str, Any]) -> bool:
    """Whether a loss of classes takes one class for each row of scores, and all alike."""
    scores, target = arguments["input"], arguments.get("target")
    is_weighted = arguments.get("label_smoothing") or arguments.get("weight") is not None
    is_single = isinstance(target, Tensor) and target.dim() == 1
    return is_single and scores.dim() == 2 and not is_weighted


def _leaves(batch: Any) -> list[Tensor]:
    """Return the tensors of a batch, at most two levels deep."""
    found: list[Tensor] = []
    layer = [batch]
    for _ in range(3):
        inner: list[Any] = []
        for each in layer:
            if isinstance(each, Tensor):
                found.append(each)
            elif isinstance(each, Mapping):
                inner += each.values()
            elif isinstance(each, tuple | list) and len(each) <= 16:
                inner += each
        layer = inner
    return found


def _is_labels(tensor: Tensor) -> bool:
    """Whether a tensor may hold a class for each sample, and can be looked at without waiting."""
    is_whole = not tensor.is_floating_point() and not tensor.is_complex()
    is_row = tensor.dim() == 1 or (tensor.dim() == 2 and tensor.shape[1] == 1)
    return is_whole and is_row and tensor.dtype is not torch.bool and tensor.device.type == "cpu"


def _fits(labels: Tensor, scores: Tensor) -> bool:
    """Whether there is a class of these scores for each sample."""
    if len(labels) != len(scores) or not len(labels):
        return False
    least, largest = labels.aminmax()
    return bool(least >= 0) and bool(largest < scores.shape[1])


def _is_suitable(function: str, scores: Tensor) -> bool:
    """Whether scores are what a loss function takes: logarithms of shares, or no shares."""
    values = scores.detach().float()
    if function == "nll_loss":
        return bool(((values.exp().sum(1) - 1).abs() < 0.01).all())
    return not (bool((values >= 0).all()) and bool(((values.sum(1) - 1).abs() < 0.01).all()))
