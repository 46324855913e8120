"""Change one sample of a batch, to see whether the outputs of others change."""

from contextlib import suppress

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from holter.lab.batches import tensors
from holter.lab.experiments import experiment
from holter.lab.experiments._probing.layout import (
    Samples,
    is_shuffled,
    loss_targets,
    output_dims,
    samples_of,
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
from holter.record.events import MixingModule
from holter.record.signals import (
    MIXING_MODULES,
    MIXING_OTHERS,
    MIXING_OWN,
    MIXING_ROUNDING,
    MIXING_SHUFFLED,
)


@experiment(
    emits=(MIXING_OWN, MIXING_OTHERS, MIXING_MODULES, MIXING_ROUNDING, MIXING_SHUFFLED),
    preflight=True,
)
def sample_mixing(setup: Setup, lab: Lab, *, steps: int = 3) -> None:
    """Is each output independent of the other samples?

    In eval mode, where batch norm does not mix samples, it replaces the input of one sample by that
    of its neighbour: the outputs of all other samples must not change. It measures the model as it
    is, and again after a few training steps, because layers that are initialised to zero hide their
    effect.

    `steps`: training steps before the second measurement; 0 for none.
    """
    (batch,) = some_batches(setup, 1)
    has_time = _measure(setup, batch, lab, "at the start" if steps else "as it is")
    if steps:
        with suppress(InapplicableError):  # a step that makes outputs infinite is another matter
            warm_up(setup, [batch], steps)
            _measure(setup, batch, lab, f"after {steps} steps")
    lab.write(MIXING_SHUFFLED, [float(is_shuffled(setup) or has_time)])


def _measure(setup: Setup, batch: Batch, lab: Lab, when: str) -> bool:
    """Replace samples and write down what changes; whether time has a dimension of its own."""
    targets = [*loss_targets(setup, batch), *tensors(batch)]
    probe, outputs = probed(setup, batch)
    sequences = sequences_of(probe.inputs, targets)
    samples = samples_of(setup, batch, probe, sequences)
    dims = output_dims(probe, samples, outputs)
    if not dims:
        raise InapplicableError("no output of the model has a batch dimension")
    trials: dict[int, tuple[Tensors, Tensor]] = {}
    for place in sorted({samples.count // 4, 3 * samples.count // 4}):
        changes = _neighbour_instead(probe, samples, place)
        if changes is not None:
            found = _differences(outputs, probe.outputs(changes), dims)
            trials |= {} if found is None else {place: (changes, found)}
    if not trials:
        raise InapplicableError("no sample of the batch can be replaced by another")
    again = probe.outputs()  # at last: a model that keeps a state gives out something else now
    limit = max(rounding(outputs[name], again[name]) for name in dims)
    for place, (changes, found) in trials.items():
        trial = f"sample {place}, {when}"
        lab.write(MIXING_OWN, [float(found[place])], trial=trial)
        for first, some in ((0, found[:place]), (place + 1, found[place + 1 :])):
            if len(some):
                lab.write(MIXING_OTHERS, some.tolist(), trial=trial, first=first)
        lab.write(MIXING_ROUNDING, [limit], trial=trial)
        found[place] = 0.0
        if float(found.max()) > limit:
            _name_module(probe, changes, (samples.count, place), limit, lab)
    return sequences is not None


def _neighbour_instead(probe: Probe, samples: Samples, place: int) -> Tensors | None:
    """The inputs with one sample replaced by the next one that differs."""
    for other in (*range(place + 1, samples.count), *range(place)):
        index = list(range(samples.count))
        index[place] = other
        changes = samples.take(probe.inputs, index)
        if any(not torch.equal(each, probe.inputs[name]) for name, each in changes.items()):
            return changes
    return None


def _differences(outputs: Tensors, changed: Tensors, dims: dict[str, int]) -> Tensor | None:
    """The largest change of each sample's outputs; None where they have another shape now."""
    found = []
    for name, dim in dims.items():
        if name not in changed or changed[name].shape != outputs[name].shape:
            return None
        found.append(per_slice(difference(outputs[name], changed[name]), dim))
    return torch.stack(found).amax(0)


def _name_module(
    probe: Probe, changes: Tensors, sample: tuple[int, int], limit: float, lab: Lab
) -> None:
    """Write down the first module inside of which other samples change."""
    count, place = sample
    for order, ((name, before), (_, after)) in enumerate(
        zip(probe.traced(), probe.traced(changes), strict=False)
    ):
        dims = [dim for dim, length in enumerate(before.shape[:2]) if length == count]
        if len(dims) != 1 or before.shape != after.shape:
            continue
        changed = per_slice(difference(before, after), dims[0])
        changed[place] = 0.0
        if float(changed.max()) > limit:
            module = probe.module(name)
            lab.write(MIXING_MODULES, [float(changed.max())], trial=name, first=order)
            lab.event(_facts(name, module))
            return


def _facts(name: str, module: nn.Module) -> MixingModule:
    """Return what tells why a module mixes samples."""
    batch_first, dim = None, None
    for part in module.modules():
        if isinstance(part, nn.RNNBase | nn.MultiheadAttention):
            batch_first = part.batch_first
        elif isinstance(part, nn.Softmax | nn.LogSoftmax):
            dim = part.dim
    is_batch_norm = isinstance(module, _BatchNorm)
    return MixingModule(name, type(module).__name__, is_batch_norm, batch_first, dim)
