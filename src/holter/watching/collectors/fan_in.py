"""How many inputs each weight of a layer sums over."""

from collections.abc import Iterable, Iterator
from math import prod
from typing import ClassVar

from torch import Tensor, nn

from holter.record.signals import PARAMETER_FAN_IN, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import BeforeUpdate, Depth
from holter.watching.collectors.roster import Roster

_LAYERS = (
    nn.Linear,
    nn.modules.conv._ConvNd,  # noqa: SLF001
    nn.RNNBase,
    nn.RNNCellBase,
    nn.MultiheadAttention,
)
_STACKED = ("weight_ih", "weight_hh", "in_proj_weight", "q_proj", "k_proj", "v_proj")


class FanIn:
    """Writes the fan-in at the first step, and again when parameters join or leave."""

    emits: ClassVar[tuple[Signal, ...]] = (PARAMETER_FAN_IN,)
    at: ClassVar[tuple[type, ...]] = (BeforeUpdate,)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()  # of the roster last written: each roster has its own

    def read(self, moment: BeforeUpdate) -> Iterable[Reading]:
        """A value for each weight of a layer."""
        roster = moment.roster
        if roster.names is self._names:
            return
        self._names = roster.names
        fans = _fans(roster)
        places = [place for place, each in enumerate(roster.parameters) if id(each) in fans]
        if places:
            values = [fans[id(roster.parameters[place])] for place in places]
            yield Reading(PARAMETER_FAN_IN, roster.names, values, places)


def _fans(roster: Roster) -> dict[int, float]:
    """The fan-in of weights, by identity; not of those that are an embedding as well."""
    modules = [module for model in roster.models for module in model.module.modules()]
    embedded = {
        id(parameter)
        for module in modules
        if isinstance(module, nn.Embedding | nn.EmbeddingBag)
        for parameter in module.parameters(recurse=False)
    }
    return {
        id(weight): fan
        for module in modules
        if isinstance(module, _LAYERS) and _is_of_torch(module)
        for weight, fan in _weights(module)
        if id(weight) not in embedded
    }


def _is_of_torch(module: nn.Module) -> bool:
    """Whether weights are applied as they are: a subclass may scale them on every call."""
    return str(type(module).forward.__module__).startswith("torch.nn.modules.")


def _weights(module: nn.Module) -> Iterator[tuple[Tensor, float]]:
    # Of weights that are made of others, such as those of `weight_norm`, the names are different.
    for name, parameter in module.named_parameters(recurse=False):
        if parameter.dim() > 1 and (name == "weight" or name.startswith(_STACKED)):
            yield parameter, _fan_in(module, parameter)


def _fan_in(module: nn.Module, weight: Tensor) -> float:
    if isinstance(module, nn.modules.conv._ConvNd) and module.transposed:  # noqa: SLF001
        return weight.shape[0] / module.groups * prod(module.kernel_size) / prod(module.stride)
    return float(prod(weight.shape[1:]))
