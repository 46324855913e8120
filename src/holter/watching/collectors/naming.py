"""Stable names: a model or optimizer keeps its name for the whole run."""

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.optim import Optimizer

_WRAPPERS = ("module", "_orig_mod")  # where DDP and torch.compile keep what they wrap

_OWN = frozenset(vars(nn.Module()))  # attributes that every module has

_DROPOUT = nn.modules.dropout._DropoutNd  # noqa: SLF001  (the base of all dropout modules)
_BATCH_NORM = nn.modules.batchnorm._NormBase  # noqa: SLF001  (the base of all batch norms)


@dataclass(frozen=True, slots=True)
class _Known:
    """An optimizer that has a name, identified by its parameters: scripts re-create optimizers."""

    index: int
    label: str
    parameters: frozenset[int]
    one: "weakref.ref[Tensor]"  # while it lives, the identities are still theirs


class Naming:
    """Labels for models and optimizers; the first, if alone, needs none."""

    def __init__(self) -> None:
        self._labels: set[str] = set()
        self._models: weakref.WeakKeyDictionary[nn.Module, tuple[str, str]] = (
            weakref.WeakKeyDictionary()
        )
        self._optimizers: list[_Known] = []
        self._count = 0

    def model(self, given: str, module: nn.Module, together: int) -> tuple[str, str]:
        """Label of a model, and prefix of its parameters' names; it is one of `together`."""
        labels = self._models.get(module)
        if labels is None:
            alone = not self._count and not self._models and together == 1
            label = _unique(given or type(unwrapped(module)).__name__, self._labels)
            self._labels.add(label)
            self._count += 1
            labels = self._models[module] = (label, "" if alone else f"{label}.")
        return labels

    def optimizer(
        self,
        given: str,
        optimizer: Optimizer,
        together: int,
        models: Sequence[tuple[str, nn.Module]],
    ) -> tuple[int, str]:
        """Index and label of an optimizer; of two for the same parameters they are the same."""
        parameters = [
            parameter for group in optimizer.param_groups for parameter in group["params"]
        ]
        keys = frozenset(id(parameter) for parameter in parameters)
        for earlier in self._optimizers:
            if earlier.parameters == keys and earlier.one() is not None:
                return earlier.index, earlier.label
        alone = not self._optimizers and together == 1
        label = given or ("" if alone else _trained_by(keys, models) or type(optimizer).__name__)
        taken = {earlier.label for earlier in self._optimizers}
        label = _unique(label, taken)
        index = len(self._optimizers)
        self._optimizers.append(_Known(index, label, keys, weakref.ref(parameters[0])))
        return index, label


def mode_dependent(model: nn.Module) -> tuple[nn.Module, ...]:
    """Dropout and batch norm in the trained parts of a model: eval mode changes what they do."""
    modules = [model] if _depends(model, in_trained=_is_trained(model)) else []
    for parent in model.modules():
        children = list(parent.children())
        if children:
            in_trained = _is_trained(parent)
            modules += [child for child in children if _depends(child, in_trained=in_trained)]
    return tuple(dict.fromkeys(modules))


def named_parameters(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The weights of a model by the names that its author knows."""
    for name, parameter in unwrapped(model).named_parameters():
        if is_weight(parameter):
            known = name.rpartition("_torch_params.")[2]  # Keras keeps its variables there
            yield known.replace("_orig_mod.", ""), parameter  # parts may be compiled, too


def is_weight(parameter: Tensor) -> bool:
    """Whether a parameter is made of numbers that can be trained: packed or random state is not."""
    return parameter.is_floating_point() or parameter.is_complex()


def unregistered_parameters(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters that a model keeps in plain lists and dicts, where `parameters()` is blind."""
    registered = {id(parameter) for parameter in model.parameters()}
    for path, module in unwrapped(model).named_modules():
        for attribute, value in vars(module).items():
            if attribute in _OWN or not isinstance(value, list | tuple | dict):
                continue
            places = value.items() if isinstance(value, dict) else enumerate(value)
            for place, part in places:
                start = f"{path}." * bool(path) + f"{attribute}[{place!r}]"
                if isinstance(part, nn.Module):
                    named = [
                        (f"{start}.{name}", parameter)
                        for name, parameter in part.named_parameters()
                    ]
                elif isinstance(part, nn.Parameter):
                    named = [(start, part)]
                else:
                    continue
                yield from (
                    (name, parameter)
                    for name, parameter in named
                    if id(parameter) not in registered
                )


def _depends(module: nn.Module, *, in_trained: bool) -> bool:
    if isinstance(module, _DROPOUT):
        return module.p > 0 and in_trained
    if isinstance(module, _BATCH_NORM) and module.track_running_stats:
        own = list(module.parameters())
        return any(parameter.requires_grad for parameter in own) if own else in_trained
    return False


def _is_trained(module: nn.Module) -> bool:
    return any(parameter.requires_grad for parameter in module.parameters())


def unwrapped(module: nn.Module) -> nn.Module:
    """What a wrapper without parameters of its own wraps: DDP, torch.compile."""
    children = dict(module.named_children())
    if len(children) == 1 and not any(True for _ in module.parameters(recurse=False)):
        name, child = next(iter(children.items()))
        if name in _WRAPPERS:
            return unwrapped(child)
    return module


def _trained_by(keys: frozenset[int], models: Sequence[tuple[str, nn.Module]]) -> str | None:
    """The model or part of a model that has just these parameters, else one that has them all."""
    parts = [*models, *(part for _, module in models for part in module.named_children())]
    families = [(label, frozenset(id(p) for p in module.parameters())) for label, module in parts]
    exact = [label for label, family in families if keys == family]
    larger = [label for label, family in families if keys <= family]
    return next(iter(exact + larger), None)


def _unique(label: str, taken: set[str]) -> str:
    if label not in taken:
        return label
    number = 2
    while f"{label or 'training'} ({number})" in taken:
        number += 1
    return f"{label or 'training'} ({number})"
