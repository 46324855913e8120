"""Evaluation passes in which the script computes no loss: that of the training is computed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from holter.record.signals import Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.inputs import roots
from holter.watching.collectors.lane import Delivery, Evaluated, Lane
from holter.watching.collectors.loss_calls import FAMILIES, Family
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    Closing,
    Depth,
    Joined,
    LossComputed,
)
from holter.watching.collectors.roster import Roster
from holter.watching.structures import parts

_TRIES = 6  # steps in which the loss of the training is looked for
_OUTPUTS = 4  # of models in one step
_LEAVES, _DEPTH = 16, 3  # tensors of a batch or an output, and structures within structures
_LARGEST = 1 << 22  # elements of an output
_UNSURE = 1 << 24  # elements of outputs that may wait for the end of a pass
_ROUNDING = 1e-5  # of the largest number

_Change = Callable[[Tensor], Tensor]
_Place = tuple[int, _Change, _Change, bool, Tensor | None]
_Moment = Joined | AfterUpdate | LossComputed | BackwardBegins | Closing


def _as_is(made: Tensor) -> Tensor:
    return made


def _classes_second(made: Tensor) -> Tensor:
    return made.movedim(-1, 1)


_ORDERS = (_as_is, _classes_second)
_ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "binary_cross_entropy": torch.sigmoid,
    "nll_loss": partial(functional.log_softmax, dim=-1),
}


@dataclass(frozen=True, slots=True)
class _Recipe:
    """How the loss of the training is made of what a model returns and of a batch."""

    function: str
    target: str  # its path in the batch
    output: int  # the place of the scores in what the model returns
    order: Callable[[Tensor], Tensor]
    activation: Callable[[Tensor], Tensor]
    is_flat: bool  # all axes but the last are one
    dtype: torch.dtype  # of the target
    options: Mapping[str, Any]
    are_shares: bool  # scores are between 0 and 1
    proof: Tensor | None  # on a device: whether the scores are those of the loss function

    def arguments(self, output: Any, batch: Mapping[str, Tensor]) -> dict[str, Any] | None:
        """Return what the loss function is to be given, or None if they do not go together."""
        made = [tensor for _, tensor in _leaves(output)]
        target = batch.get(self.target)
        if target is None or len(made) <= self.output or made[self.output].numel() > _LARGEST:
            return None
        if made[self.output].dim() < 2 and self.order is not _as_is:
            return None
        # Copies: scripts change predictions in place.
        scores = self.activation(self.order(made[self.output].detach())).clone()
        aims = target.detach().to(scores.device, self.dtype, non_blocking=True)
        if FAMILIES[self.function] is Family.CLASSES and self.dtype is torch.int64:
            if self.is_flat:
                scores, aims = scores.reshape(-1, scores.shape[-1]), aims.reshape(-1)
            if scores.dim() < 2 or scores.numel() != aims.numel() * scores.shape[1]:
                return None  # another call, not of this batch
            if not _are_classes(target, scores, self.options.get("ignore_index")):
                return None
        elif scores.numel() == aims.numel():
            scores = scores.reshape(aims.shape)
        else:
            return None
        if _are_shares(scores) and not self.are_shares:  # in eval mode it returns something else
            return None
        return {"input": scores, "target": aims, **self.options}


class _Foreseen(NamedTuple):
    """A loss that counts unless the script computes one."""

    loader: str
    function: str
    arguments: Mapping[str, Any]
    publish: Callable[[Tensor], None]


class UnscoredPasses:
    """Learns how the training computes its loss, and does the same in passes without a loss.

    A batch counts if the model is called once with it and the script calls no loss function before
    the next batch. The first pass over a loader counts when it is over: scripts may compute a loss
    of all outputs then. What is not found among the tensors of a batch as the loss function is
    given it is no target, and nothing is computed.
    """

    emits: ClassVar[tuple[Signal, ...]] = ()
    at: ClassVar[tuple[type, ...]] = (Joined, AfterUpdate, LossComputed, BackwardBegins, Closing)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self.declined: list[str] = []
        self._training: Calls[str] = Calls(self._ignores, self._trained)
        self._evaluating: Calls[str] = Calls(self._has_answer, self._answered)
        self._tries = _TRIES
        self._batch: object = None  # that was trained on last
        self._outputs: list[Any] = []
        self._recipes: list[_Recipe] = []
        self._scored: set[str] = set()  # loaders whose batches the script computes losses on
        self._given: Evaluated | None = None
        self._waiting: list[_Foreseen] = []
        self._unscored: set[str] = set()  # loaders of which a whole pass had no loss
        self._unsure: list[tuple[_Foreseen, Tensor]] = []  # of first passes

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._training.spent + self._evaluating.spent

    def join(self, lane: Lane) -> None:
        """Hear of batches; of those that are trained on until the loss is known."""
        self._lane = lane
        lane.at_batch.append(self._trains)
        lane.at_evaluated.append(self._evaluates)
        lane.at_scored.append(self._scores)
        lane.at_close.append(self._end)

    def read(self, moment: _Moment) -> Iterable[Reading]:
        """Look at the losses of the first steps that are read whole."""
        if isinstance(moment, LossComputed):
            if self._tries and self._batch is not None and len(self._recipes) < _OUTPUTS:
                self._learn(moment)
        elif isinstance(moment, BackwardBegins):
            if moment.opens_step and self._training.listens:
                self._tries = 0 if self._recipes else self._tries - 1
                self._forget()
        else:
            self._forget()
            if isinstance(moment, Joined | AfterUpdate) and self._tries:
                depth = moment.depth if isinstance(moment, Joined) else moment.next_depth
                if depth >= self.depth:
                    self._listen(self._training, moment.roster)
        return ()

    def _forget(self) -> None:
        self._training.stop()
        self._outputs.clear()
        if not self._tries and self._batch is not None:
            self._batch = None
            self._lane.at_batch = _without(self._lane.at_batch, self._trains)

    def _trains(self, delivery: Delivery) -> None:
        self._batch = delivery.batch

    @staticmethod
    def _listen(calls: Calls[str], roster: Roster) -> None:
        if not any(is_compiled(model.module) for model in roster.models):
            calls.know(roots(roster))
            calls.listen()

    def _ignores(self, _: str, __: nn.Module, ___: Any) -> bool:
        return not torch.is_grad_enabled() or len(self._outputs) >= _OUTPUTS

    def _trained(self, _: str, __: nn.Module, ___: tuple[Any, Any], output: Any) -> None:
        self._outputs.append(output)

    @torch.no_grad()
    def _learn(self, moment: LossComputed) -> None:
        given = dict(moment.arguments)
        scores, target = given.pop("input", None), given.pop("target", None)
        if not (isinstance(scores, Tensor) and isinstance(target, Tensor)):
            return
        if not scores.is_cpu and moment.function in _ACTIVATIONS:
            return  # which of them is the model's own is not known without waiting
        if moment.function not in FAMILIES or any(
            _is_of_batch(option, target) for option in given.values()
        ):
            return
        paths = [path for path, leaf in _leaves(self._batch) if _equal(leaf, target)]
        places = (_found(output, scores, moment.function) for output in self._outputs)
        made = next((place for place in places if place is not None), None)
        if not paths or made is None or (len(paths) > 1 and not target.is_cpu):
            return
        self._recipes.append(
            _Recipe(
                *(moment.function, paths[0], *made[:4]),
                *(target.dtype, given, _are_shares(scores), made[4]),
            )
        )

    def _evaluates(self, given: Evaluated) -> None:
        """Publish the loss of the batch before, and listen to what the model makes of this one."""
        self._publish()
        self._given = None
        if not self._recipes or given.loader in self._scored:
            return
        if any(recipe.proof is not None for recipe in self._recipes):  # read once
            proven = [recipe for recipe in self._recipes if recipe.proof is None or recipe.proof]
            self._recipes = [replace(recipe, proof=None) for recipe in proven]
        if not self._evaluating.listens:
            self._evaluating.check()
            self._listen(self._evaluating, given.roster)
            self._lane.at_batch = [*self._lane.at_batch, self._resumes]
            self._lane.at_mode = [*self._lane.at_mode, self._end]
        self._given = given

    def _has_answer(self, _: str, __: nn.Module, ___: Any) -> bool:
        return self._given is None

    @torch.no_grad()
    def _answered(self, _: str, __: nn.Module, ___: tuple[Any, Any], output: Any) -> None:
        given = self._given
        if given is None:
            return
        batch = dict(_leaves(given.batch))
        made = [(recipe.function, recipe.arguments(output, batch)) for recipe in self._recipes]
        fitting = [(function, arguments) for function, arguments in made if arguments is not None]
        if fitting and self._waiting:  # the model is called again on the same batch
            self._waiting, self._given = [], None
            return
        self._waiting += [
            _Foreseen(given.loader, function, arguments, given.foresee(function, arguments))
            for function, arguments in fitting
        ]

    def _scores(self) -> None:
        """See a loss that the script computes in an evaluation."""
        if self._given is not None:
            self._scored.add(self._given.loader)
        self._waiting, self._unsure = [], []
        self._end()

    def _resumes(self, _: Delivery) -> None:
        self._end()

    def _end(self) -> None:
        self._publish()
        self._settle()
        self._given = None
        if self._evaluating.listens:
            self._evaluating.stop()
            self._lane.at_batch = _without(self._lane.at_batch, self._resumes)
            self._lane.at_mode = _without(self._lane.at_mode, self._end)

    @torch.no_grad()
    def _publish(self) -> None:
        """Compute the losses that wait: here, where no tap hears what holter itself calls."""
        waiting, self._waiting = self._waiting, []
        for foreseen in waiting:
            try:
                loss = getattr(functional, foreseen.function)(**foreseen.arguments)
            except Exception:  # it may depend on the batch in ways that are not known
                self._recipes, self._unsure = [], []
                return
            if foreseen.loader in self._unscored:
                foreseen.publish(loss)
            else:
                self._unsure.append((foreseen, loss))
        if sum(foreseen.arguments["input"].numel() for foreseen, _ in self._unsure) > _UNSURE:
            self._settle()

    def _settle(self) -> None:
        """Publish the losses of a first pass in which the script computed none."""
        unsure, self._unsure = self._unsure, []
        for foreseen, loss in unsure:
            self._unscored.add(foreseen.loader)
            foreseen.publish(loss)


def _leaves(value: Any, depth: int = _DEPTH, path: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in a structure, each with its path."""
    if isinstance(value, Tensor):
        if value.layout is torch.strided and not value.is_nested:
            yield path, value
        return
    for number, (_, step, part) in enumerate((parts(value) if depth else None) or ()):
        if number < _LEAVES:
            yield from _leaves(part, depth - 1, path + step)


def _equal(leaf: Tensor, target: Tensor) -> bool:
    """Whether a tensor holds the same numbers in the same order.

    Nothing waits for a device: there the type has to do. The target of a hand-written loss is known
    by a difference, up to rounding.
    """
    if leaf.numel() != target.numel() or not leaf.numel():
        return False
    if not (leaf.is_cpu and target.is_cpu):
        return leaf.dtype == target.dtype
    one, other = leaf.reshape(-1).to(target.dtype), target.reshape(-1)
    return bool(_are_close(one, other)) if other.is_floating_point() else torch.equal(one, other)


def _are_close(one: Tensor, other: Tensor) -> Tensor:
    apart = (one.reshape(-1) - other.reshape(-1)).abs().max()
    return apart <= _ROUNDING * other.abs().max()


def _found(output: Any, scores: Tensor, function: str) -> _Place | None:
    """Return where the scores are in what a model returned, and what was done to them."""
    activations = [_as_is, *([_ACTIVATIONS[function]] if function in _ACTIVATIONS else [])]
    for place, (_, tensor) in enumerate(_leaves(output)):
        if tensor.numel() != scores.numel() or not tensor.is_floating_point():
            continue
        for order in _ORDERS:
            if tensor.dim() < 2 and order is not _as_is:
                continue
            arranged = order(tensor.detach())
            is_flat = arranged.shape != scores.shape
            is_matrix = scores.dim() == 2 and arranged.shape[-1] == scores.shape[-1]
            if is_flat and FAMILIES[function] is Family.CLASSES and not is_matrix:
                continue
            for activation in activations:
                made = activation(arranged)
                if _equal(made, scores):
                    proof = None if scores.is_cpu else _are_close(made, scores)
                    return place, order, activation, is_flat, proof
    return None


def _is_of_batch(value: Any, target: Tensor) -> bool:
    """Whether an option of a loss function belongs to the samples of one batch."""
    return isinstance(value, Tensor) and value.dim() > 0 and len(value) == len(target)


def _are_classes(labels: Tensor, scores: Tensor, ignored: int | None) -> bool:
    """Whether there is a class of these scores for each label; known on the host alone.

    On a GPU a label without a class would end the script.
    """
    if not labels.is_cpu:
        return False
    kept = labels if ignored is None else labels[labels != ignored]
    if not kept.numel():
        return False
    least, largest = kept.aminmax()
    return bool(least >= 0) and bool(largest < scores.shape[1])


def _are_shares(scores: Tensor) -> bool:
    """Whether scores may be probabilities; what is on a device is not looked at."""
    return scores.is_cpu and bool(((scores >= 0) & (scores <= 1)).all())


def _without(hearers: list[Any], hear: Any) -> list[Any]:
    return [each for each in hearers if each != hear]
