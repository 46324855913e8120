"""Give the model the inputs of another batch, to see whether its outputs change."""

import torch
from torch import Tensor

from holter.lab.experiments import experiment
from holter.lab.experiments._probing.layout import loss_targets, samples_of
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
from holter.record.signals import INPUT_LOSS, INPUT_RESPONSE, INPUT_ROUNDING

_ALL = "all inputs"
_ROUNDING = 1e-4  # standard deviations that rounding may make at most


@experiment(emits=(INPUT_RESPONSE, INPUT_ROUNDING, INPUT_LOSS), preflight=True)
def input_control(setup: Setup, lab: Lab, *, steps: int = 20) -> None:
    """Do the outputs depend on the inputs?

    Replaces the inputs of the model by those of another batch, or of other samples if there is a
    single batch, all at once and one by one, with the training's modes and random numbers. Outputs
    should change. Because a head initialised to zero makes all outputs equal, it measures again
    after training on one batch, and compares the loss of that batch with its loss on other inputs.

    `steps`: training steps on one batch between the two measurements.
    """
    batches = some_batches(setup, 2)
    others = _others(setup, batches)
    weights = [parameter.detach().clone() for parameter in setup.model.parameters()]
    _measure(setup, batches[0], others, lab, 0)
    warm_up(setup, batches[:1], steps)
    pairs = zip(setup.model.parameters(), weights, strict=True)
    if all(torch.equal(now, before) for now, before in pairs):
        return
    _measure(setup, batches[0], others, lab, 1)
    probe = Probe(setup, batches[0])
    losses = {"own inputs": {}, "other inputs": others}
    lab.write_each(
        INPUT_LOSS, {trial: probe.loss(batches[0], each) for trial, each in losses.items()}
    )


def _others(setup: Setup, batches: list[Batch]) -> Tensors:
    """Other values for each input that has some: of another batch, or of other samples."""
    probe = Probe(setup, batches[0], as_trained=True)
    inputs = {name: each for name, each in probe.inputs.items() if name not in probe.state}
    own = _without_labels(setup, batches[0], inputs)
    for batch in batches[1:]:
        found = Probe(setup, batch, as_trained=True).inputs
        others = {name: found[name] for name in own if name in found}
        if all(others[name].shape == own[name].shape for name in others):
            changed = {name: each for name, each in others.items() if not _same(each, own[name])}
            if changed:
                return changed
    try:
        samples = samples_of(setup, batches[0], probe)
        turned = samples.take(probe.inputs, [*range(1, samples.count), 0])
    except InapplicableError:  # nodes of one graph, or times first: other rows are other inputs
        turned = {name: each.roll(1, 0) for name, each in own.items() if each.dim()}
    changed = {name: turned[name] for name in turned if name in own}
    changed = {name: each for name, each in changed.items() if not _same(each, own[name])}
    if not changed:
        raise InapplicableError("the model gets the same inputs every time")
    return changed


def _without_labels(setup: Setup, batch: Batch, inputs: Tensors) -> Tensors:
    """The inputs but for targets among them, as models take that compute their loss themselves."""
    targets = [each.flatten() for each in loss_targets(setup, batch)]
    kept: Tensors = {}
    for name, each in inputs.items():
        known = [*targets, *(other.flatten() for other in kept.values())]
        if not any(_same(each.flatten(), other.to(each.device)) for other in known):
            kept[name] = each
    return kept or inputs


def _same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def _measure(setup: Setup, batch: Batch, others: Tensors, lab: Lab, moment: int) -> None:
    probe, outputs = probed(setup, batch, as_trained=True)
    again = probe.outputs()
    limit = max(rounding(each, again[name]) for name, each in outputs.items())
    # What differs more than that from call to call is no rounding, and must not hide a response.
    lab.write(INPUT_ROUNDING, [min(limit, _ROUNDING)], first=moment)
    trials = {_ALL: others}
    if len(others) > 1:
        trials |= {name: {name: each} for name, each in others.items()}
    for trial, changes in trials.items():
        response = _response(probe, outputs, changes)
        if response is not None:
            lab.write(INPUT_RESPONSE, [response], trial=trial, first=moment)


def _response(probe: Probe, outputs: Tensors, changes: Tensors) -> float | None:
    """The largest change of any output; None where the model cannot be called like this."""
    try:
        changed = probe.outputs(changes)
    except Exception:  # inputs that go together, as a sequence and its length
        return None
    if any(name not in changed or changed[name].shape != outputs[name].shape for name in outputs):
        return torch.inf
    return max(float(difference(each, changed[name]).max()) for name, each in outputs.items())
