"""Modes: modules in train or eval mode, whatever the step itself says."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from holter.lab.changes import Altered, Change, TappedChange
from holter.lab.changes._hooks import around_models, is_training, modes_set
from holter.lab.setup import Setup
from holter.record.trials import TrialKind, TrialName


@contextmanager
def in_mode(model: nn.Module, modules: Iterable[nn.Module], *, training: bool) -> Iterator[None]:
    """Force the mode of some modules whenever the model is called; restore all modes afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    chosen = list(modules)

    def force(*_: Any) -> None:
        for module in chosen:
            module.training = training

    force()
    hook = model.register_forward_pre_hook(force, prepend=True)
    try:
        with warnings.catch_warnings(action="ignore"):  # torch's remarks on modes are not news
            yield
    finally:
        hook.remove()
        for module, mode in modes:
            module.training = mode


def in_eval_mode(model: nn.Module) -> Any:
    """Force a whole model into eval mode."""
    return in_mode(model, model.modules(), training=False)


def batch_norm_mode(*, training: bool) -> Change:
    """Normalise by the statistics of batches in train mode, by running statistics in eval mode."""
    kind = TrialKind.BATCH_NORM_TRAIN if training else TrialKind.BATCH_NORM_EVAL
    by = "the statistics of each batch" if training else "running statistics"
    return Change(
        TrialName(kind), f"Let batch norm normalise by {by}.", partial(_normalised, training)
    )


def batch_norms(setup: Setup) -> list[nn.Module]:
    """Return the batch norms that have running statistics."""
    modules = [module for model in setup.models.values() for module in model.modules()]
    return [m for m in modules if isinstance(m, _BatchNorm) and m.running_mean is not None]


@contextmanager
def _normalised(training: bool, setup: Setup) -> Iterator[Setup]:
    with in_mode(setup.model, batch_norms(setup), training=training):
        yield setup


def _forced(training: bool, altered: Altered) -> AbstractContextManager[None]:
    def forced(model: nn.Module) -> AbstractContextManager[None]:
        if is_training() is not training:
            return nullcontext()
        left = _frozen_in(model) if training else set()  # in eval mode on purpose
        modules = [module for module in model.modules() if module not in left]
        return modes_set(modules, training=training, altered=altered)

    return around_models(forced)


def _frozen(altered: Altered) -> AbstractContextManager[None]:
    def forced(model: nn.Module) -> AbstractContextManager[None]:
        return modes_set(_frozen_in(model), training=False, altered=altered)

    return around_models(forced)


def _frozen_in(model: nn.Module) -> set[nn.Module]:
    """Return the modules of a model that are, or are inside, one with frozen parameters alone."""
    frozen = [module for module in model.modules() if _is_frozen(module)]
    return {inner for module in frozen for inner in module.modules()}


def _is_frozen(module: nn.Module) -> bool:
    flags = [parameter.requires_grad for parameter in module.parameters()]
    return bool(flags) and not any(flags)


FROZEN_EVAL = TappedChange(
    TrialName(TrialKind.FROZEN_EVAL),
    "Put modules into eval mode whose parameters are all frozen, such as a teacher.",
    _frozen,
)
TRAIN_MODE = TappedChange(
    TrialName(TrialKind.TRAIN_MODE),
    "Put what is trained into train mode wherever gradients are computed.",
    partial(_forced, True),
)
EVAL_MODE = TappedChange(
    TrialName(TrialKind.EVAL_MODE),
    "Put the model into eval mode wherever no gradients are computed.",
    partial(_forced, False),
)
