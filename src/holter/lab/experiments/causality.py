"""Replace later inputs, to see whether earlier outputs change."""

from collections.abc import Iterator
from contextlib import suppress

import torch
from torch import Tensor

from holter.lab.batches import tensors
from holter.lab.experiments import experiment
from holter.lab.experiments._probing.layout import (
    Sequences,
    is_one_hot,
    loss_targets,
    sequences_of,
)
from holter.lab.experiments._probing.probe import (
    Probe,
    Tensors,
    difference,
    per_slice,
    probed,
    rounding,
    some_batches,
    warm_up,
)
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup
from holter.lab.writing import Lab
from holter.record.signals import (
    CAUSALITY_CHANGE,
    CAUSALITY_LATER,
    CAUSALITY_MODULES,
    CAUSALITY_ROUNDING,
)


@experiment(
    emits=(CAUSALITY_CHANGE, CAUSALITY_LATER, CAUSALITY_ROUNDING, CAUSALITY_MODULES),
    preflight=True,
)
def causality(setup: Setup, lab: Lab, *, steps: int = 3, positions: int = 12) -> None:
    """Is the next element hidden from a model that predicts it?

    Applies if the targets are the inputs shifted by one. In eval mode it replaces all inputs from
    one position on: outputs before it must not change. If they do, it replaces single positions to
    find which output depends on which input, and names the first module whose earlier outputs
    change. It measures the model as it is, and again after a few training steps, because layers
    that are initialised to zero hide their effect.

    `steps`: training steps before the second measurement; 0 for none.
    `positions`: maximum number of single positions to replace.
    """
    (batch,) = some_batches(setup, 1)
    if _measure(setup, batch, lab, positions, "") or not steps:
        return
    with suppress(InapplicableError):  # a step that makes outputs infinite is another matter
        warm_up(setup, [batch], steps)
        _measure(setup, batch, lab, positions, f", after {steps} steps")


def _measure(setup: Setup, batch: Batch, lab: Lab, positions: int, when: str) -> bool:
    """Replace inputs and write down what changes; whether anything did."""
    targets = [*loss_targets(setup, batch), *tensors(batch)]
    probe, _ = probed(setup, batch)
    sequences = sequences_of(probe.inputs, targets)
    if sequences is None:
        raise InapplicableError("the targets are not the inputs shifted by one")
    text = _Text(probe, sequences)
    cuts = sorted({1, text.time // 2, text.time - 1})
    changes = {cut: text.change(cut, text.time) for cut in cuts}
    limit = text.rounding()  # at last: a model that keeps a state gives out something else now
    leaks = []
    for cut, (before, after) in changes.items():
        trial = f"inputs from {cut} on{when}"
        lab.write(CAUSALITY_CHANGE, before.tolist(), trial=trial)
        lab.write(CAUSALITY_LATER, [float(after.max())], trial=trial)
        leaks += [cut] if float(before.max()) > limit else []
    lab.write(CAUSALITY_ROUNDING, [limit], trial=when.removeprefix(", "))
    if leaks:
        for place in _spaced(text.time, positions):
            before, _ = text.change(place, place + 1)
            lab.write(CAUSALITY_CHANGE, before.tolist(), trial=f"input {place} alone{when}")
        found = text.first_module(leaks[len(leaks) // 2], limit)
        if found is not None:
            order, name, size = found
            lab.write(CAUSALITY_MODULES, [size], trial=name, first=order)
    return bool(leaks)


def _spaced(time: int, count: int) -> list[int]:
    """Positions from 1 to the last one, evenly spaced."""
    return sorted({1 + round(at * (time - 2) / max(count - 1, 1)) for at in range(count)})


class _Text:
    """A batch of sequences whose inputs can be replaced from one position to another."""

    def __init__(self, probe: Probe, sequences: Sequences) -> None:
        self._probe, self._name, self._dim = probe, sequences.name, sequences.dim
        self._values, counted = probe.inputs[self._name], sequences.counted
        self._others = _others(self._values, self._dim)
        self.time = self._values.shape[self._dim]
        counted = counted.movedim(self._dim, 0)
        self._counted = counted.flatten(2).any(2) if counted.dim() > 2 else counted
        self._outputs = probe.outputs()
        self._names = [name for name, each in self._outputs.items() if self._readings(each)]
        if not self._names:
            raise InapplicableError("no output of the model has a sequence dimension")

    def rounding(self) -> float:
        """The change that may be rounding: of an equal call, and of the data type."""
        again = self._probe.outputs()
        return max(rounding(self._outputs[name], again[name]) for name in self._names)

    def change(self, begin: int, end: int) -> tuple[Tensor, Tensor]:
        """The largest change at each position, before `begin` and after, of inputs up to `end`."""
        outputs = self._probe.outputs(self._replaced(begin, end))
        pairs = [(self._outputs[name], outputs[name]) for name in self._names]
        found = torch.stack([self._changes(*pair, begin) for pair in pairs]).amax(0)
        return found[:begin], found[begin:]

    def first_module(self, begin: int, limit: float) -> tuple[int, str, float] | None:
        """The first module whose output before `begin` changes: its place, its name, how much."""
        usual = self._probe.traced()
        traced = self._probe.traced(self._replaced(begin, self.time))
        for order, ((name, one), (_, other)) in enumerate(zip(usual, traced, strict=False)):
            if one.shape == other.shape and self._readings(one):
                size = float(self._changes(one, other, begin)[:begin].max())
                if size > limit:
                    return order, name, size
        return None

    def _replaced(self, begin: int, end: int) -> Tensors:
        places = torch.arange(self.time, device=self._values.device)
        shape = [-1 if dim == self._dim else 1 for dim in range(self._values.dim())]
        inside = ((places >= begin) & (places < end)).view(shape)
        return {self._name: torch.where(inside, self._others, self._values)}

    def _changes(self, one: Tensor, other: Tensor, begin: int) -> Tensor:
        """The change at each position, by the reading that sees the least of it before `begin`.

        Where batch and sequence have one size, positions may be along either dimension of the
        output. All samples are changed, so that the wrong reading always sees a change early on:
        it can neither hide a leak nor invent one.
        """
        found = []
        for reading in self._readings(difference(one, other)):
            extra = [1] * (reading.dim() - self._counted.dim())
            counted = self._counted.view(*self._counted.shape, *extra).to(reading.device)
            found.append(per_slice(torch.where(counted, reading, 0.0), 0))
        return min(found, key=lambda each: float(each[:begin].max()))

    def _readings(self, output: Tensor) -> list[Tensor]:
        """The output with positions first, then samples: in each way its shape can be read."""
        return list(_readings(output, self._values.shape[: self._counted.dim()], self._dim))


def _readings(output: Tensor, shape: torch.Size, dim: int) -> Iterator[Tensor]:
    if len(shape) == 1:
        if output.shape[0] == shape[0]:
            yield output
        return
    time, count = shape[dim], shape[1 - dim]
    if output.dim() >= 2 and output.shape[:2] == (count, time):
        yield output.transpose(0, 1)
    if output.dim() >= 2 and output.shape[:2] == (time, count):
        yield output
    if output.dim() >= 3 and (output.shape[0], output.shape[-1]) == (count, time):
        yield output.movedim(-1, 0)
    if output.shape[0] == count * time:
        yield output.reshape(time, count, *output.shape[1:])
        yield output.reshape(count, time, *output.shape[1:]).transpose(0, 1)


def _others(values: Tensor, dim: int) -> Tensor:
    """Something else at each place, of the same kind."""
    if is_one_hot(values):
        return values.roll(1, -1)
    if not values.is_floating_point():
        known, place = torch.unique(values, return_inverse=True)
        following: Tensor = known[(place + 1) % len(known)]
        return following
    if values.dim() > 1 and values.shape[1 - dim] > 1:
        return values.roll(1, 1 - dim)
    return values.flip(dim)
