"""Remove the padding, to see whether outputs at real positions change."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isqrt
from typing import NamedTuple

import torch
from torch import Tensor, nn

from holter.lab.batches import tensors
from holter.lab.calls import LossEvaluation
from holter.lab.experiments import experiment
from holter.lab.experiments._probing.layout import (
    Samples,
    known_loss_call,
    output_dims,
    samples_of,
    sequences_of,
)
from holter.lab.experiments._probing.probe import (
    Probe,
    Tensors,
    difference,
    probed,
    rounding,
    some_batches,
    warm_up,
)
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup
from holter.lab.writing import Lab
from holter.record.signals import (
    PADDING_AMOUNT,
    PADDING_CHANGE,
    PADDING_COUNTED,
    PADDING_DECISIONS,
    PADDING_LENGTH,
    PADDING_ROUNDING,
    PADDING_START,
    PADDING_WIDTHS,
)

_LOOKED_AT = 4  # batches in which padding is looked for
_IGNORED = -100


@experiment(
    emits=(
        *(PADDING_CHANGE, PADDING_AMOUNT, PADDING_LENGTH, PADDING_ROUNDING, PADDING_COUNTED),
        *(PADDING_START, PADDING_DECISIONS, PADDING_WIDTHS),
    ),
    preflight=True,
)
def padding(setup: Setup, lab: Lab, *, samples: int = 4, steps: int = 3) -> None:
    """Is padding without effect?

    Padding is a run of one value at the end of sequences that a mask, lengths, the `padding_idx` of
    an embedding or ignored targets mark as such. In eval mode it runs samples alone and without
    their padding: outputs at real positions must be the same as in the padded batch. If the model
    takes one sequence length only, it changes the padding values instead, provided that a mask or
    lengths are given. It measures after a few training steps, because some layers are initialised
    to zero.

    `samples`: number of samples to try.
    `steps`: training steps before the measurement.
    """
    batches = some_batches(setup, _LOOKED_AT)
    for batch in batches:
        call = known_loss_call(setup, batch)
        probe, _ = probed(setup, batch)
        found = _find(setup, batch, probe, call)
        if found is None:
            continue
        counted = _counted(found, call)
        if counted is not None:
            lab.write(PADDING_COUNTED, [counted])
        if len(batches) > 1:
            time = 1 - found.samples.dims[found.name]
            given = [probed(setup, other)[0].inputs for other in batches]
            widths = {inputs[found.name].shape[time] for inputs in given if found.name in inputs}
            lab.write(PADDING_WIDTHS, [len(widths)])
        warm_up(setup, [batch], steps)
        try:
            _measure(setup, batch, found, lab, samples)
        except RuntimeError as error:
            raise InapplicableError(
                "the outputs for a shorter sequence cannot be compared with those for the whole"
            ) from error
        return
    raise InapplicableError("no batch has recognisable padding")


@dataclass(frozen=True, slots=True)
class _Padding:
    """An input with padding at its end: which, where its samples are, how long they really are."""

    name: str
    samples: Samples
    lengths: Tensor
    time: int
    call: LossEvaluation | None  # of the loss
    is_given: bool = False  # the model is told of it by a mask or by lengths

    @property
    def places(self) -> Tensor:
        """Which positions of which samples are padding."""
        return torch.arange(self.time) >= self.lengths[:, None]

    def as_rows(self, target: Tensor) -> Tensor | None:
        """A target for each position, with samples first; None if it has another size."""
        if target.numel() != self.places.numel():
            return None
        dim = self.samples.dims[self.name]
        shape = self.places.shape if dim == 0 else self.places.shape[::-1]
        return target.cpu().reshape(shape).movedim(dim, 0)


def _find(setup: Setup, batch: Batch, probe: Probe, call: LossEvaluation | None) -> _Padding | None:
    """The first input that ends in runs of one value of which something else speaks as well."""
    targets = [] if call is None else tensors(call.arguments.get("target"))
    sequences = sequences_of(probe.inputs, [*targets, *tensors(batch)])
    samples = samples_of(setup, batch, probe, sequences)
    embeddings = [module for module in setup.model.modules() if isinstance(module, nn.Embedding)]
    indices = {embedding.padding_idx for embedding in embeddings}
    for name, dim in samples.dims.items():
        rows = probe.inputs[name].movedim(dim, 0).cpu()
        if (
            rows.is_complex()
            or rows.dim() != (3 if rows.is_floating_point() else 2)
            or len(torch.unique(rows)) <= 2
        ):
            continue
        for value, lengths in _runs(rows):
            found = _Padding(name, samples, lengths, rows.shape[1], call)
            if _is_given(probe, found):
                return replace(found, is_given=True)
            is_index = not rows.is_floating_point() and value in indices
            if is_index or any(_is_ignored(found, target) for target in targets):
                return found
    return None


def _runs(rows: Tensor) -> Iterator[tuple[float, Tensor]]:
    """Values that end some of the rows, and how long all rows are without them."""
    places = rows if rows.dim() > 2 else rows[..., None]
    ends = places[:, -1]
    for value in torch.unique(ends[(ends == ends[:, :1]).all(1), 0]).tolist():
        blank = (places == value).all(2)
        run = blank.flip(1).long().cumprod(1).sum(1)
        if int(run.max()) >= 2 and bool((run < rows.shape[1]).any()):
            yield value, rows.shape[1] - run


def _is_given(probe: Probe, found: _Padding) -> bool:
    """Whether the model is given a mask of these places, or these lengths."""
    places = found.places
    for name, dim in found.samples.dims.items():
        each = probe.inputs[name].cpu()
        if each.dim() == 1 and torch.equal(each.double(), found.lengths.double()):
            return True
        if each.dim() == 2 and name != found.name:
            mask = each.movedim(dim, 0) != 0
            if torch.equal(mask, places) or torch.equal(mask, ~places):
                return True
    return False


def _is_ignored(found: _Padding, target: Tensor) -> bool:
    """Whether the targets at all of these places are such that losses ignore them."""
    rows = found.as_rows(target)
    return rows is not None and bool((rows == _IGNORED)[found.places].all())


def _counted(found: _Padding, call: LossEvaluation | None) -> float | None:
    """The share of padding in what the loss counts, where that can be told."""
    if call is None or "ignore_index" not in call.arguments:
        return None
    rows = found.as_rows(call.arguments["target"])
    if rows is None or call.arguments["reduction"] == "none":  # left out by hand, maybe
        return None
    if rows.is_floating_point() or len(torch.unique(rows[found.places])) != 1:
        return None
    counted = rows != call.arguments["ignore_index"]
    return float((counted & found.places).sum() / counted.sum().clamp(min=1))


class _Compared(NamedTuple):
    """Of an output: the dimension of samples, and at which positions the loss counts it, if known.

    A decoder also returns scores after the end of a target: nothing trains them, and they may
    depend on anything.
    """

    dim: int
    scored: Tensor | None


def _measure(setup: Setup, batch: Batch, found: _Padding, lab: Lab, count: int) -> None:
    probe, outputs = probed(setup, batch)
    dims = output_dims(probe, found.samples, outputs)
    compared = {
        name: _Compared(dim, _scored(outputs[name], dim, found.call)) for name, dim in dims.items()
    }
    if not dims:
        raise InapplicableError("no output of the model has a batch dimension")
    order = torch.argsort(found.lengths).tolist()
    padded = [place for place in order if 2 <= int(found.lengths[place]) < found.time]
    if not padded:
        raise InapplicableError("no sample has both padding and data")
    for place in padded[:: max(len(padded) // count, 1)][:count]:
        length = int(found.lengths[place])
        whole = probe.outputs(_cut(probe, found, place, found.time))
        alone = _change(outputs, whole, compared, (place, 0), (found.time, found.time))
        try:
            other, at, how = probe.outputs(_cut(probe, found, place, length)), 0, "without padding"
        except Exception as error:
            if not found.is_given:
                raise InapplicableError(
                    "the model takes sequences of one length only, and gets no mask"
                ) from error
            other, at, how = probe.outputs(_filled(probe, found)), place, "with other padding"
        trial = f"sample {place} {how}"
        change = _change(outputs, other, compared, (place, at), (found.time, length))
        lab.write(PADDING_CHANGE, [change], trial=trial)
        start = _change(outputs, other, compared, (place, at), (found.time, length), half=True)
        lab.write(PADDING_START, [start], trial=trial)
        decided = _decided(outputs, other, compared, (place, at), (found.time, length))
        if decided is not None:
            lab.write(PADDING_DECISIONS, [decided], trial=trial)
        # A maximum over positions feels that there is padding, but not how much of it.
        some = length + max(2, isqrt(found.time - length))
        if at == 0 and some < found.time:
            other = probe.outputs(_cut(probe, found, place, some))
            change = _change(outputs, other, compared, (place, 0), (found.time, length))
            lab.write(PADDING_AMOUNT, [change], trial=trial)
        lab.write(PADDING_LENGTH, [found.time - length], trial=trial)
        again = probe.outputs()
        limit = max(rounding(outputs[name], again[name]) for name in dims)
        lab.write(PADDING_ROUNDING, [max(limit, 10 * alone)], trial=trial)


def _cut(probe: Probe, found: _Padding, place: int, length: int) -> Tensors:
    """One sample, twice, up to a length."""
    inputs = {**probe.inputs, **found.samples.take(probe.inputs, [place, place])}
    for name, each in inputs.items():
        own = found.samples.dims.get(name)
        dims = [dim for dim, size in enumerate(each.shape) if size == found.time and dim != own]
        for dim in dims[:1] if name == found.name else dims:
            inputs[name] = inputs[name].narrow(dim, 0, length)
    return inputs


def _filled(probe: Probe, found: _Padding) -> Tensors:
    """All samples, with their first element in place of padding."""
    each, dim = probe.inputs[found.name], found.samples.dims[found.name]
    places = found.places.movedim(0, dim).to(each.device)
    places = places.view(*places.shape, *[1] * (each.dim() - 2))
    return {found.name: torch.where(places, each.narrow(1 - dim, 0, 1), each)}


def _change(
    outputs: Tensors,
    other: Tensors,
    compared: dict[str, _Compared],
    samples: tuple[int, int],
    lengths: tuple[int, int],
    *,
    half: bool = False,
) -> float:
    """The largest change of one sample where it counts, by its places in both outputs.

    With `half`, of outputs that have positions the first half of the real ones.
    """
    found = [
        float(difference(*pair, of=outputs[name]).max())
        for name, pair in _pairs(outputs, other, compared, samples, lengths, half=half)
    ]
    return max(found, default=0.0)


def _decided(
    outputs: Tensors,
    other: Tensors,
    compared: dict[str, _Compared],
    samples: tuple[int, int],
    lengths: tuple[int, int],
) -> float | None:
    """The share of positions that get another class, if the loss is given classes of positions."""
    for name, pair in _pairs(outputs, other, compared, samples, lengths):
        if compared[name].scored is not None:
            one, two = (each.argmax(-1) for each in pair)
            return float((one != two).double().mean())
    return None


def _pairs(
    outputs: Tensors,
    other: Tensors,
    compared: dict[str, _Compared],
    samples: tuple[int, int],
    lengths: tuple[int, int],
    *,
    half: bool = False,
) -> Iterator[tuple[str, list[Tensor]]]:
    """Yield of each output the name, and what both ways gave one sample where it counts."""
    time, length = lengths
    for name, (dim, scored) in compared.items():
        pair = [outputs[name].select(dim, samples[0]), other[name].select(dim, samples[1])]
        for at, sizes in enumerate(zip(*(each.shape for each in pair), strict=True)):
            # Positions are cut to the real ones, classes that are as many do no harm.
            is_time = max(sizes) == time or sizes[0] != sizes[1]
            kept = min(*sizes, length) if max(sizes) == time else min(sizes)
            kept = -(-kept // 2) if half and is_time else kept
            pair = [each.narrow(at, 0, kept) for each in pair]
        if scored is not None:
            rows = scored.select(dim, samples[0])[: len(pair[0])].nonzero().flatten()
            pair = [each.index_select(0, rows.to(each.device)) for each in pair]
        if pair[0].numel():
            yield name, pair


def _scored(output: Tensor, dim: int, call: LossEvaluation | None) -> Tensor | None:
    """Which positions of which samples have a target that the loss counts; None if unknown."""
    if call is None or "ignore_index" not in call.arguments or output.dim() < 3 or dim > 1:
        return None
    target = call.arguments["target"]
    shape = output.shape[:2]
    if target.is_floating_point() or target.numel() != shape.numel():
        return None
    if target.dim() == 2 and target.shape != shape:
        target = target.t()
    counted = target.reshape(shape).cpu() != call.arguments["ignore_index"]
    return counted if bool(counted.any()) else None
