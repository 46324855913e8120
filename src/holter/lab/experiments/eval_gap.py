"""The same batches in train mode and in eval mode."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from holter.lab.changes.dropout import dropout_off, drops
from holter.lab.changes.modes import in_mode
from holter.lab.experiments import experiment
from holter.lab.experiments._probing.dropping import dropping
from holter.lab.experiments._probing.probe import loss_of, some_batches, warm_up
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup
from holter.lab.writing import Lab
from holter.record.signals import (
    EVAL_GAP_DROPPED,
    EVAL_GAP_LOSS,
    EVAL_GAP_MOMENTUM,
    EVAL_GAP_START,
    EVAL_GAP_VALUES,
    EVAL_GAP_VARIANCE,
)

_MOMENTUM = 0.1  # lower ones arrive at the same statistics, later


@experiment(
    emits=(
        *(EVAL_GAP_LOSS, EVAL_GAP_START, EVAL_GAP_DROPPED),
        *(EVAL_GAP_VARIANCE, EVAL_GAP_VALUES, EVAL_GAP_MOMENTUM),
    ),
    preflight=True,
)
def eval_gap(
    setup: Setup,
    lab: Lab,
    *,
    steps: int = 20,
    passes: int = 50,
    batches: int = 8,
    start: float | None = None,
) -> None:
    """Is the model in eval mode the one that was trained?

    Trains briefly on a few batches, lets running statistics settle by forward passes without
    updates, and compares the losses of these batches in train mode, without dropout, with batch
    norm in eval mode too, and in eval mode. This separates the effect of dropout from that of batch
    norm.

    `steps`: training steps.
    `passes`: forward passes after them, for running statistics; 0 leaves those as they are.
    `batches`: number of batches.
    `start`: loss before the training, for a model that is trained already.
    """
    if len(setup.phases) > 1:
        raise InapplicableError("the step optimises several losses alternately, in train mode only")
    chosen = some_batches(setup, batches)
    model = _Modes(setup, chosen[0])
    if not model.dropouts and not model.norms:
        train, evaluated = (model.losses(chosen[:1], evaluated=e) for e in ([], model.all))
        if np.allclose(train, evaluated, rtol=1e-4, equal_nan=True):
            raise InapplicableError("no module behaves differently in eval mode")
    untrained = model.losses(chosen, dropout=False) if start is None else [start]
    warm_up(setup, chosen, steps)
    model.settle(chosen, passes)
    with dropping(setup) as dropped:
        losses = {  # in this order: what is in train mode updates its statistics
            "eval": model.losses(chosen, evaluated=model.all),
            "batch norm in eval mode": model.losses(
                chosen, dropout=False, evaluated=[*model.norms.values()]
            ),
            "train": model.losses(chosen),
            "train without dropout": model.losses(chosen, dropout=False),
        }
    lab.write(EVAL_GAP_START, untrained)
    for trial, each in losses.items():
        lab.write(EVAL_GAP_LOSS, each, trial=trial)
    module, share = dropped.largest
    lab.write(EVAL_GAP_DROPPED, [share], trial=module)
    _write_norm(model, chosen, lab)


class _Modes:
    """The modules that are in train mode when the model is trained, by what that does to them."""

    def __init__(self, setup: Setup, batch: Batch) -> None:
        self._setup = setup
        self.all = _in_train_mode(setup, batch)
        self.norms = {
            name: each
            for name, each in setup.model.named_modules()
            if isinstance(each, _BatchNorm) and each in self.all and each.running_var is not None
        }
        self.dropouts = [each for each in self.all if drops(each)]

    def losses(
        self,
        batches: Sequence[Batch],
        *,
        dropout: bool = True,
        evaluated: Sequence[nn.Module] = (),
    ) -> list[float]:
        """Return the loss of each batch, with or without dropout, some modules in eval mode."""
        for module in self.all:
            module.training = True
        dropping = nullcontext() if dropout else dropout_off(self._setup)
        with dropping, in_mode(self._setup.model, evaluated, training=False):
            return [loss_of(self._setup, batch) for batch in batches]

    def settle(self, batches: Sequence[Batch], passes: int) -> None:
        """Forward passes in train mode, until running statistics are what they will be."""
        for norm in self.norms.values() if passes else ():
            if norm.momentum:
                norm.momentum = max(norm.momentum, _MOMENTUM)
        self.losses([batches[number % len(batches)] for number in range(passes)])


def _in_train_mode(setup: Setup, batch: Batch) -> list[nn.Module]:
    """The modules that are in train mode at the time of the training's forward pass."""
    found: list[nn.Module] = []

    def look(_: nn.Module, __: Any) -> None:
        found[:] = [module for module in setup.model.modules() if module.training]

    handle = setup.entry.register_forward_pre_hook(look)
    try:
        loss_of(setup, batch)
    finally:
        handle.remove()
    if not found:
        raise InapplicableError("the training runs in eval mode, or calls parts of the model")
    return found


def _write_norm(model: _Modes, batches: Sequence[Batch], lab: Lab) -> None:
    """Write down the batch norm whose running variance is the furthest from that of batches."""
    factors: dict[str, list[float]] = {}
    values: dict[str, int] = {}

    def listener(name: str) -> Any:
        def tell(module: Any, args: tuple[Tensor, ...]) -> None:
            channels = args[0].detach().float().transpose(0, 1).flatten(1)
            ratio = (module.running_var + module.eps) / (channels.var(1) + module.eps)
            factors.setdefault(name, []).append(float(ratio.log().abs().median().exp()))
            values[name] = channels.shape[1]

        return tell

    handles = [each.register_forward_pre_hook(listener(name)) for name, each in model.norms.items()]
    try:
        model.losses(batches, dropout=False, evaluated=[*model.norms.values()])
    finally:
        for handle in handles:
            handle.remove()
    typical = {name: float(np.median(each)) for name, each in factors.items()}
    if typical:
        worst = max(typical, key=lambda name: typical[name])
        lab.write(EVAL_GAP_VARIANCE, [typical[worst]], trial=worst)
        lab.write(EVAL_GAP_VALUES, [values[worst]], trial=worst)
        momentum = model.norms[worst].momentum
        lab.write(EVAL_GAP_MOMENTUM, [np.nan if momentum is None else momentum], trial=worst)
