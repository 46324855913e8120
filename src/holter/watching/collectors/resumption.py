"""What a training takes from a checkpoint: weights, and the state of its optimizers or not."""

import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.optim import Optimizer

from holter.record.signals import (
    CHECKPOINT_OPTIMIZER_STEPS,
    CHECKPOINT_RESTORED,
    CHECKPOINT_SAME_OPTIMIZER,
    CHECKPOINT_SCHEDULER_STEPS,
    CHECKPOINT_WEIGHTS,
    Signal,
)
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import BeforeUpdate, CheckpointRead, Depth, WeightsLoaded
from holter.watching.collectors.roster import Subject

_DEPTH = 4  # levels of a checkpoint that are searched
_WIDTH = 64  # entries of one level, but for tensors
_TENSORS = 1 << 14  # of a checkpoint that are recognised again
_CHANGES = frozenset(("params", "param_names", "lr", "initial_lr"))  # in a group of an optimizer

Settings = tuple[tuple[int, Mapping[str, Any]], ...]  # size and hyperparameters of each group


@dataclass(frozen=True, slots=True)
class _Saved:
    """The state of an optimizer in a checkpoint."""

    settings: Settings
    steps: float | None  # that its state has seen; None where it has no state, or does not count


class Resumption:
    """Compares each optimizer at its first update with the one that a checkpoint was written by.

    Nothing of a checkpoint is kept alive.
    """

    emits: ClassVar[tuple[Signal, ...]] = (
        CHECKPOINT_WEIGHTS,
        CHECKPOINT_OPTIMIZER_STEPS,
        CHECKPOINT_SCHEDULER_STEPS,
        CHECKPOINT_SAME_OPTIMIZER,
        CHECKPOINT_RESTORED,
    )
    at: ClassVar[tuple[type, ...]] = (CheckpointRead, WeightsLoaded, BeforeUpdate)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = (CheckpointRead,)

    def __init__(self) -> None:
        self._tensors: dict[int, weakref.ref[Tensor]] = {}
        self._optimizers: list[_Saved] = []
        self._scheduler_steps: float | None = None
        self._loaded: dict[int, weakref.ref[Tensor]] = {}  # parameters that hold such tensors
        self._told: weakref.WeakSet[Optimizer] = weakref.WeakSet()

    def read(self, moment: CheckpointRead | WeightsLoaded | BeforeUpdate) -> Iterable[Reading]:
        """One reading of each signal, before the first update of an optimizer."""
        if isinstance(moment, CheckpointRead):
            self._search(moment.content)
        elif isinstance(moment, WeightsLoaded):
            self._follow(moment.module, moment.state)
        elif self._optimizers and self._loaded and moment.optimizer not in self._told:
            self._told.add(moment.optimizer)
            return self._compare(moment.subject, moment.optimizer)
        return ()

    def _search(self, content: object) -> None:
        for part in _parts(content, _DEPTH):
            if isinstance(part, Tensor):
                if len(self._tensors) < _TENSORS:
                    self._tensors[id(part)] = weakref.ref(part)
            elif "param_groups" in part and "state" in part:
                self._optimizers.append(_Saved(_settings(part["param_groups"]), _steps(part)))
            elif isinstance(part.get("last_epoch"), int):
                self._scheduler_steps = max(part["last_epoch"], self._scheduler_steps or 0)

    def _follow(self, module: nn.Module, state: Any) -> None:
        if not isinstance(state, Mapping):
            return
        for name, parameter in module.named_parameters():
            given = state.get(name)
            known = self._tensors.get(id(given))
            if known is not None and known() is given:
                self._loaded[id(parameter)] = weakref.ref(parameter)

    def _compare(self, subject: Subject, optimizer: Optimizer) -> Iterator[Reading]:
        own = subject.parameters[: subject.held]
        loaded = sum(
            (known := self._loaded.get(id(parameter))) is not None and known() is parameter
            for parameter in own
        )
        if not loaded:
            return
        settings = _settings(optimizer.param_groups)
        sizes = [size for size, _ in settings]
        alike = [saved for saved in self._optimizers if [n for n, _ in saved.settings] == sizes]
        same = [saved for saved in alike if saved.settings == settings]
        saved = next(iter(same + alike + self._optimizers))
        for signal, value in (
            (CHECKPOINT_WEIGHTS, loaded / len(own)),
            (CHECKPOINT_OPTIMIZER_STEPS, saved.steps),
            (CHECKPOINT_SCHEDULER_STEPS, self._scheduler_steps),
            (CHECKPOINT_SAME_OPTIMIZER, float(bool(same))),
            (CHECKPOINT_RESTORED, float(bool(optimizer.state))),
        ):
            if value is not None:
                yield Reading(signal, subject.owner, [value])


def _parts(content: object, depth: int) -> Iterator[Any]:
    """Every tensor in a checkpoint, and every mapping that may be a state; bounded in number."""
    if isinstance(content, Mapping):
        yield content
        entries = list(content.values())
        if "param_groups" in content:  # the tensors of an optimizer are no weights
            return
    elif isinstance(content, list | tuple):
        entries = list(content)
    else:
        return
    yield from (entry for entry in entries if isinstance(entry, Tensor))
    if depth:
        nested = [entry for entry in entries if isinstance(entry, Mapping | list | tuple)]
        for entry in nested[:_WIDTH]:
            yield from _parts(entry, depth - 1)


def _settings(groups: Any) -> Settings:
    """Number of parameters and hyperparameters of each group, with the rate it began with."""
    return tuple(
        (
            len(group["params"]),
            {
                "rate": _number(group.get("initial_lr", group.get("lr"))),
                **{
                    name: _number(value)
                    for name, value in group.items()
                    if name not in _CHANGES and isinstance(value, int | float | tuple | list)
                },
            },
        )
        for group in groups
    )


def _number(value: Any) -> Any:
    """A hyperparameter in a form that survives saving: tuples may come back as lists."""
    if isinstance(value, Tensor):
        return value.item() if value.is_cpu and value.numel() == 1 else None
    return tuple(value) if isinstance(value, list) else value


def _steps(state: Mapping[str, Any]) -> float | None:
    """How many steps the saved state of an optimizer has seen; 0 where it does not count them."""
    entries = state["state"]
    if not isinstance(entries, Mapping) or not entries:
        return None
    first = next(iter(entries.values()))
    count = first.get("step", 0) if isinstance(first, Mapping) else 0
    if isinstance(count, Tensor):
        count = count.item() if count.is_cpu and count.numel() == 1 else 0
    return float(count) if isinstance(count, int | float) else 0.0
