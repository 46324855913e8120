"""Exchange one part of the inputs between samples, to see whether outputs change."""

import time
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from holter.lab.batches import tensors
from holter.lab.experiments import experiment
from holter.lab.experiments._probing.layout import Samples, loss_targets, samples_of, sequences_of
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
from holter.record.signals import USE_CHANGE, USE_ROUNDING, USE_SCALE

WHOLE = "input "  # before the name of one that is exchanged as a whole
_KEY = "['"  # in the name of a part of a dict
_CATEGORIES = 16  # columns of whole numbers; more are a text
_FEWEST = 8  # samples: for a few, all units behind a column may happen to be off
_DISTINCT = 10  # values of a column that is no category
_MOST = 64  # parts along one dimension that are tried; evenly spaced where there are more


@experiment(emits=(USE_CHANGE, USE_ROUNDING, USE_SCALE), preflight=True)
def input_use(setup: Setup, lab: Lab, *, steps: int = 3, seconds: float = 2.0) -> None:
    """Does every part of the input matter?

    In eval mode it exchanges one column of a table, one position of a sequence or one channel of an
    image between the samples of a batch: some output must change. Of several inputs it exchanges
    each as a whole too, in eval mode and as in training. It also writes down the scale of each
    column. It measures after a few training steps,
    because some layers are initialised to zero.

    `steps`: training steps before the measurement.
    `seconds`: time limit.
    """
    (batch,) = some_batches(setup, 1)
    warm_up(setup, [batch], steps)
    compared = loss_targets(setup, batch)
    targets = [*compared, *tensors(batch)]
    probe, outputs = probed(setup, batch)
    sequences = sequences_of(probe.inputs, targets)
    samples = samples_of(setup, batch, probe, sequences)
    if samples.count < _FEWEST:
        raise InapplicableError(f"a batch holds {samples.count} of the {_FEWEST} samples needed")
    until = time.perf_counter() + seconds
    measured = False
    for name in samples.dims:
        is_text = sequences is not None and name == sequences.name
        for kind, dim in _dimensions(probe.inputs[name], samples.dims[name], is_text=is_text):
            for place, change in _changes(probe, outputs, samples, name, dim):
                lab.write(USE_CHANGE, [change], trial=f"{kind} of {name}", first=place)
                scale = _scale(probe.inputs[name].select(dim, place))
                if kind == "columns" and scale is not None:
                    lab.write(USE_SCALE, [scale], trial=f"{kind} of {name}", first=place)
                measured = True
                if time.perf_counter() > until:
                    break
    for name, change in _whole_changes(setup, batch, probe, samples, compared):
        if change or _KEY not in name:
            lab.write(USE_CHANGE, [change], trial=f"{WHOLE}{name}")
        measured = True
    if not measured:
        raise InapplicableError("no input has columns, positions or channels that can be exchanged")
    again = probe.outputs()  # last, because a model that keeps a state returns something else now
    lab.write(USE_ROUNDING, [max(rounding(outputs[each], again[each]) for each in outputs)])


def _dimensions(tensor: Tensor, samples: int, *, is_text: bool) -> Iterator[tuple[str, int]]:
    """The dimensions whose parts mean something by themselves, and what these are called."""
    if tensor.dim() == 2:
        many = not tensor.is_floating_point() and tensor.shape[1 - samples] > _CATEGORIES
        yield "positions" if is_text or many else "columns", 1 - samples
    elif tensor.dim() == 3:
        yield "positions", 1 - samples
        yield "columns", 2
    elif tensor.dim() == 4 and samples == 0:
        yield "channels", 1


def _whole_changes(
    setup: Setup,
    batch: Batch,
    probe: Probe,
    samples: Samples,
    targets: Sequence[Tensor],
) -> Iterator[tuple[str, float]]:
    """What exchanging each of several inputs changes, in eval mode or, if nothing, in training.

    Inputs that are the same in all samples are left out, and targets: a model may be given those
    for another purpose. A loss that the model computes itself is an output, too. A model that is
    given a whole dict takes from it what it needs.
    """
    if len(samples.dims) < 2:
        return
    outputs = probe.outputs(everything=True)
    for name, dim in samples.dims.items():
        whole = probe.inputs[name]
        exchanged = whole.roll(1, dim)
        if torch.equal(exchanged, whole) or any(_equal(whole, each) for each in targets):
            continue
        change = _change(probe, outputs, {name: exchanged}, everything=True)
        if not change:
            trained, _ = probed(setup, batch, as_trained=True)
            made = trained.outputs(everything=True)
            change = _change(trained, made, {name: exchanged}, everything=True)
        yield name, change


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other.to(one.device))


def _change(probe: Probe, outputs: Tensors, changes: Tensors, *, everything: bool = False) -> float:
    """The largest change of an output that has still its shape."""
    made = probe.outputs(changes, everything=everything)
    pairs = [(outputs[each], made[each]) for each in outputs if each in made]
    return max(
        (float(difference(*pair).max()) for pair in pairs if pair[0].shape == pair[1].shape),
        default=0.0,
    )


def _changes(
    probe: Probe, outputs: Tensors, samples: Samples, name: str, dim: int
) -> Iterator[tuple[int, float]]:
    """What exchanging each part changes; parts that are the same in all samples are left out."""
    whole = probe.inputs[name]
    exchanged = whole.roll(1, samples.dims[name])
    count = whole.shape[dim]
    for place in _spaced(count):
        if torch.equal(exchanged.select(dim, place), whole.select(dim, place)):
            continue
        changed = whole.clone()
        changed.select(dim, place).copy_(exchanged.select(dim, place))
        yield place, _change(probe, outputs, {name: changed})


def _scale(column: Tensor) -> float | None:
    """The standard deviation of a column of numbers; None if it holds categories."""
    if not column.is_floating_point() or len(torch.unique(column)) < _DISTINCT:
        return None
    return float(column.float().std())


def _spaced(count: int) -> list[int]:
    return sorted({round(at * (count - 1) / (_MOST - 1)) for at in range(_MOST)})
