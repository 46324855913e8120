"""The tokens that a step is made of: what embeddings of sequences are given, padding left out."""

from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from holter.record.signals import INPUT_TOKENS, Signal
from holter.watching.collectors import STEP, Reading
from holter.watching.collectors.batches import Value
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.inputs import as_values
from holter.watching.collectors.moments import AfterUpdate, BackwardBegins, Closing, Depth, Joined
from holter.watching.collectors.roster import Roster

_MASK = "attention_mask"  # the name of an argument that is 0 at padding


class Tokens:
    """Counts what embeddings are given until the step's first backward.

    Sequences are integers of the shape (batch, length). Of several embeddings the one with the
    largest input is that of the tokens: positions are the same for all sequences of a batch.
    """

    emits: ClassVar[tuple[Signal, ...]] = (INPUT_TOKENS,)
    at: ClassVar[tuple[type, ...]] = (Joined, AfterUpdate, BackwardBegins, Closing)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self.declined: list[str] = []
        self._calls: Calls[bool] = Calls(self._heard, self._returned)
        self._elements: dict[int, int] = {}  # by embedding
        self._counts: dict[int, Value] = {}
        self._masked: list[Tensor] = []

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._calls.spent

    def read(self, moment: Joined | AfterUpdate | BackwardBegins | Closing) -> Iterable[Reading]:
        """The tokens, when the first backward of a step begins."""
        if isinstance(moment, BackwardBegins):
            if moment.opens_step:
                self._calls.stop()
                self._calls.check()
                yield from self._readings()
            return
        self._forget()
        depth = Depth.LIGHT
        if isinstance(moment, Joined):
            depth = moment.depth
        elif isinstance(moment, AfterUpdate):
            depth = moment.next_depth
        if isinstance(moment, Closing) or depth is not self.depth:
            self._calls.stop()
        else:
            self._listen(moment.roster)

    def _listen(self, roster: Roster) -> None:
        models = [model.module for model in roster.models]
        embeddings = [
            module
            for model in models
            for module in model.modules()
            if isinstance(module, nn.Embedding)
        ]
        if not embeddings or any(map(is_compiled, models)):
            self._calls.stop()
            return
        self._calls.know([(model, True) for model in models] + [(e, False) for e in embeddings])
        self._calls.listen()

    def _heard(self, is_model: bool, module: nn.Module, arguments: Any) -> bool:
        """Whether there is nothing more to know of this call: of a model, its named arguments."""
        if not torch.is_grad_enabled():
            return True
        if not isinstance(module, nn.Embedding):
            return not is_model
        ids = arguments[0] if arguments and isinstance(arguments, tuple) else None
        if isinstance(ids, Tensor) and _is_sequences(ids):
            place, padding = id(module), module.padding_idx
            count: Value = float(ids.numel()) if padding is None else (ids != padding).sum()
            self._elements[place] = self._elements.get(place, 0) + ids.numel()
            self._counts[place] = self._counts.get(place, 0.0) + count
        return True

    def _returned(
        self,
        is_model: bool,  # noqa: ARG002  (its key)
        module: nn.Module,  # noqa: ARG002
        arguments: tuple[Any, Any],
        output: Any,  # noqa: ARG002
    ) -> None:
        mask = arguments[1].get(_MASK)
        if isinstance(mask, Tensor) and _is_sequences(mask):
            self._masked.append(mask)

    def _readings(self) -> Iterable[Reading]:
        if self._elements:
            place = max(self._elements, key=lambda each: self._elements[each])
            count = self._counts[place]
            if sum(mask.numel() for mask in self._masked) == self._elements[place]:
                count = torch.stack([(mask != 0).sum() for mask in self._masked]).sum()
            yield Reading(INPUT_TOKENS, STEP, as_values(count))
        self._forget()

    def _forget(self) -> None:
        self._elements.clear()
        self._counts.clear()
        self._masked.clear()


def _is_sequences(tensor: Tensor) -> bool:
    whole = tensor.layout is torch.strided and not tensor.is_nested
    return whole and tensor.dim() == 2 and tensor.shape[1] > 1 and not tensor.is_floating_point()
