"""What normalising modules are given: values per channel for batch norms, the size for others."""

import math
from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from holter.record.signals import NORMALISATION_INPUT_RMS, NORMALISATION_SAMPLES, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.moments import AfterUpdate, BackwardBegins, Closing, Depth, Joined
from holter.watching.collectors.naming import unwrapped
from holter.watching.collectors.outputs import gathered, readable
from holter.watching.collectors.roster import Roster

_BATCH_NORM = nn.modules.batchnorm._BatchNorm  # noqa: SLF001  (the base of all batch norms)
_LAYER_NORMS = ("LayerNorm", "RMSNorm")  # many libraries have their own, by names that end so


class Normalisations:
    """Reads the first call of each such module before the step's first backward."""

    emits: ClassVar[tuple[Signal, ...]] = (NORMALISATION_SAMPLES, NORMALISATION_INPUT_RMS)
    at: ClassVar[tuple[type, ...]] = (Joined, AfterUpdate, BackwardBegins, Closing)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self.declined: list[str] = []  # the collector of activations says it all
        self._calls: Calls[tuple[Signal, int]] = Calls(self._heard)
        self._names: dict[Signal, tuple[str, ...]] = dict.fromkeys(self.emits, ())
        self._samples: dict[int, float] = {}  # by the place among the names
        self._sizes: dict[int, Tensor] = {}

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._calls.spent

    def read(self, moment: Joined | AfterUpdate | BackwardBegins | Closing) -> Iterable[Reading]:
        """A value for each module that was called, when the first backward of a step begins."""
        if isinstance(moment, BackwardBegins):
            self._calls.check()
            self._calls.stop()
            return self._readings() if moment.opens_step else ()
        depth = Depth.LIGHT
        if isinstance(moment, Joined):
            depth = moment.depth
        elif isinstance(moment, AfterUpdate):
            depth = moment.next_depth
        if isinstance(moment, Closing) or depth < self.depth:
            self._calls.stop()
        else:
            self._listen(moment.roster)
        return ()

    def _listen(self, roster: Roster) -> None:
        by_signal: dict[Signal, dict[str, nn.Module]] = {signal: {} for signal in self.emits}
        for model in roster.models:
            if is_compiled(model.module):
                self._calls.stop()
                return
            for name, module in unwrapped(model.module).named_modules():
                kind = _kind(module)
                if kind is not None:
                    path = f"{model.prefix}{name}".removesuffix(".") or model.label
                    by_signal[kind].setdefault(path, module)
        for signal, modules in by_signal.items():
            if self._names[signal] != tuple(modules):
                self._names[signal] = tuple(modules)
        self._samples.clear()
        self._sizes.clear()
        self._calls.know(
            (module, (signal, place))
            for signal, modules in by_signal.items()
            for place, module in enumerate(modules.values())
        )
        self._calls.listen()

    def _heard(self, key: tuple[Signal, int], module: nn.Module, arguments: Any) -> bool:
        signal, place = key
        given = readable(arguments) if torch.is_grad_enabled() else None
        if given is None:
            return True
        if signal is NORMALISATION_SAMPLES:
            if module.training and given.dim() > 1 and place not in self._samples:
                self._samples[place] = given.numel() / given.shape[1] * _ranks(module)
        elif place not in self._sizes:
            wide = None if given.dtype == torch.float64 else torch.float32
            norm = torch.linalg.vector_norm(given, dtype=wide)
            self._sizes[place] = norm / math.sqrt(given.numel())
        return True

    def _readings(self) -> Iterable[Reading]:
        if self._samples:
            names = self._names[NORMALISATION_SAMPLES]
            yield Reading(
                NORMALISATION_SAMPLES, names, list(self._samples.values()), list(self._samples)
            )
        if self._sizes:
            values = gathered([value.reshape(1) for value in self._sizes.values()])
            names = self._names[NORMALISATION_INPUT_RMS]
            yield Reading(NORMALISATION_INPUT_RMS, names, values, list(self._sizes))
        self._samples, self._sizes = {}, {}


def _kind(module: nn.Module) -> Signal | None:
    if isinstance(module, _BATCH_NORM):
        return NORMALISATION_SAMPLES
    if type(module).__name__.endswith(_LAYER_NORMS):
        return NORMALISATION_INPUT_RMS
    return None


def _ranks(module: nn.Module) -> int:
    """How many processes a batch norm takes its statistics from."""
    if not isinstance(module, nn.SyncBatchNorm) or not torch.distributed.is_initialized():
        return 1
    return torch.distributed.get_world_size(module.process_group)
