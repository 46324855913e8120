"""What the modules of a model return: mean, spread, extremes, dead and saturated units."""

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils.hooks import RemovableHandle

from holter.record.signals import (
    ACTIVATION_ABSMAX,
    ACTIVATION_DEAD_FRACTION,
    ACTIVATION_MEAN,
    ACTIVATION_SATURATED_FRACTION,
    ACTIVATION_STD,
    Signal,
)
from holter.watching.collectors import Reading
from holter.watching.collectors.calls import is_compiled, is_silent
from holter.watching.collectors.held import Held
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    Closing,
    Depth,
    Joined,
    Rectified,
)
from holter.watching.collectors.naming import unwrapped
from holter.watching.collectors.outputs import (
    DeadUnits,
    Slot,
    Sums,
    at_once,
    gathered,
    pooled,
    readable,
    sent,
    shares,
    wide,
)
from holter.watching.collectors.roster import Model, Roster

_SILENT = 3  # windows without a single call after which the hook is removed for good

_MOST_FUNCTIONS = 256  # layers with a ReLU as a function behind them

_NO_OUTPUT = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)
_NO_CHANGE = (nn.Identity, nn.Flatten, nn.Unflatten)  # what they return was read before them


class Activations:
    """Listens to module calls from the end of one step to the first backward of the next.

    The statistics are computed when a module returns, and each call leaves a few scalars, still on
    their device. On a GPU outputs are held for a moment instead, so that one launch reads many of
    them: see `Held`. Where the next module works in place (`ReLU(inplace=True)` behind a batch
    norm) an output cannot wait.

    It is torch's global forward hook that listens, for as long as a window is open. Hooks on each
    module would make `torch.jit.script` fail, would keep `nn.TransformerEncoderLayer` from its fast
    path in a validation between two steps, and would travel with copies and checkpoints of the
    model. A global hook makes compiled modules warn or compile again: with one of those among the
    watched, none is set, and `declined` says so.
    """

    emits: ClassVar[tuple[Signal, ...]] = (
        ACTIVATION_MEAN,
        ACTIVATION_STD,
        ACTIVATION_ABSMAX,
        ACTIVATION_DEAD_FRACTION,
        ACTIVATION_SATURATED_FRACTION,
    )
    at: ClassVar[tuple[type, ...]] = (Joined, AfterUpdate, Rectified, BackwardBegins, Closing)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self.declined: list[str] = []  # sentences about what is not recorded
        self.spent = 0.0  # seconds inside the hook, which no moment sees
        self._handle: RemovableHandle | None = None
        self._slots: dict[int, Slot] = {}  # by the identity of the module
        self._names: tuple[str, ...] = ()
        self._clipping: tuple[str, ...] = ()
        self._saturating: tuple[str, ...] = ()
        self._producer: Slot | None = None  # the last called whose output has known units
        self._error: Exception | None = None
        self._silent = 0  # windows in a row in which no module was called
        self._functions = _Functions()
        self._held = Held()
        self._sizes: tuple[torch.device | None, list[int], Tensor] = (None, [], torch.empty(0))

    def read(
        self, moment: Joined | AfterUpdate | Rectified | BackwardBegins | Closing
    ) -> Iterable[Reading]:
        """A value for each module that was called, when the first backward of a step begins."""
        try:
            return self._read(moment)
        except Exception:
            self._stop()  # no call will follow
            raise

    def _read(
        self, moment: Joined | AfterUpdate | Rectified | BackwardBegins | Closing
    ) -> list[Reading]:
        if isinstance(moment, Rectified):
            self._rectified(moment.output)
            return []
        if isinstance(moment, BackwardBegins):
            if self._error is not None:
                raise self._error
            if self._handle is None or not moment.opens_step:
                return []
            self._stop()
            return [*self._readings(), *self._functions.readings()]
        depth = Depth.LIGHT
        if isinstance(moment, Joined):
            depth = moment.depth
        elif isinstance(moment, AfterUpdate):
            depth = moment.next_depth
        if isinstance(moment, Closing) or depth is not Depth.FULL:
            self._stop()
            self._forget()
        elif self._silent < _SILENT:
            self._listen(moment.roster)
        return []

    # The window.

    def _listen(self, roster: Roster) -> None:
        named: dict[int, tuple[str, nn.Module]] = {}
        for model in roster.models:
            if is_compiled(model.module):
                self._decline(f"activations are not recorded: {model.label} is compiled")
                self._stop()
                return
            for name, module in self._leaves(model):
                named.setdefault(id(module), (name, module))
        slots: dict[int, Slot] = {}
        for key, (_, module) in named.items():
            slot = self._slots.get(key)
            slots[key] = slot if slot and slot.module() is module else Slot(module)
        for slot, (_, following) in zip(slots.values(), [*named.values()][1:], strict=False):
            slot.is_read_at_once |= bool(getattr(following, "inplace", False))
        pairs = [(name, slots[key]) for key, (name, _) in named.items()]
        self._names = _kept(self._names, [name for name, _ in pairs])
        self._clipping = _kept(self._clipping, [name for name, slot in pairs if slot.clips])
        self._saturating = _kept(
            self._saturating, [name for name, slot in pairs if slot.saturated_in]
        )
        clipping, saturating = itertools.count(), itertools.count()
        for place, slot in enumerate(slots.values()):
            slot.place = place
            slot.clip_place = next(clipping) if slot.clips else -1
            slot.saturation_place = next(saturating) if slot.saturated_in else -1
        self._slots, self._producer = slots, None
        if self._handle is None and slots:
            self._forget()
            self._handle = register_module_forward_hook(self._returned)

    def _leaves(self, model: Model) -> Iterator[tuple[str, nn.Module]]:
        root = unwrapped(model.module)
        waiting = [(model.prefix.removesuffix("."), root)]
        while waiting:
            path, module = waiting.pop()
            if isinstance(module, torch.jit.ScriptModule):
                self._decline(
                    f"activations of {path or model.label} are not recorded: it is scripted"
                )
                continue
            inside = dict(module.named_children())
            inside.pop("parametrizations", None)  # they return weights
            # Attention calls the function of its only child, never the child.
            if not inside or isinstance(module, nn.MultiheadAttention):
                if not isinstance(module, _NO_OUTPUT + _NO_CHANGE):
                    yield path or model.label, module
                continue
            start = f"{path}." if path else ""
            waiting += [(start + name, child) for name, child in reversed(inside.items())]

    def _stop(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _decline(self, sentence: str) -> None:
        if sentence not in self.declined:
            self.declined.append(sentence)

    # Between the modules.

    def _returned(self, module: nn.Module, args: Any, output: Any) -> None:  # noqa: ARG002
        """The hook: any module of the process has returned."""
        if torch.compiler.is_compiling():  # first, for then nothing below becomes part of the graph
            return
        slot = self._slots.get(id(module))
        if slot is None or not torch.is_grad_enabled() or slot.module() is not module:
            return
        if is_silent():
            return
        began = time.thread_time()
        try:
            output = readable(output)
            if output is not None:
                if slot.units:
                    self._producer = slot
                slot.was_called, dtype = True, output.dtype
                if not self._held.takes(slot, output):
                    output = slot.read(output)
                slot.read_units(output, dtype, self._producer)
        except Exception as error:  # never into training; `read` tells
            self._error = error
            self._stop()
        finally:
            self.spent += time.thread_time() - began

    def _rectified(self, output: Tensor) -> None:
        """Read a ReLU that is no module, under the name of the layer before."""
        kept = readable(output)
        if self._handle is not None and kept is not None and kept.dim() and not is_silent():
            slot = self._producer
            name = "" if slot is None else self._names[slot.place]
            self._functions.called(kept, name, slot)

    # Afterwards.

    def _readings(self) -> list[Reading]:
        called = [slot for slot in self._slots.values() if slot.was_called]
        if not called:
            self._silent += 1
            if self._silent == _SILENT:
                self._decline(
                    "activations are not recorded: no module was seen at work; the step may be"
                    " compiled, or its modules replicated"
                )
            return []
        self._silent = 0
        readings = self._summaries(called)
        saturated = [slot for slot in called if slot.outputs]
        if saturated:
            values = shares([(slot.saturated, slot.outputs) for slot in saturated])
            places = [slot.saturation_place for slot in saturated]
            readings.append(
                Reading(ACTIVATION_SATURATED_FRACTION, self._saturating, values, places)
            )
        ended = [slot for slot in called if slot.window is not None and slot.window.ends()]
        if ended:
            dead = shares([slot.window.dead() for slot in ended if slot.window is not None])
            places = [slot.clip_place for slot in ended]
            readings.append(Reading(ACTIVATION_DEAD_FRACTION, self._clipping, dead, places))
            for slot in ended:
                slot.window = DeadUnits()
        self._forget()
        return readings

    def _forget(self) -> None:
        self._held.forget()
        for slot in self._slots.values():
            slot.forget()

    def _summaries(self, called: list[Slot]) -> list[Reading]:
        """Pool the calls of each module: one short series of operations for all of them."""
        devices: dict[torch.device, list[Sums]] = {}
        for sums in (*self._held.take(), *at_once(called)):
            devices.setdefault(sums.rows.device, []).append(sums)
        tables, order = [], []
        for device, read in devices.items():
            table, slots = pooled(read)
            tables.append(table / self._elements(device, slots))
            order += slots
        if not tables:
            return []
        mean, square, absmax = gathered(tables).unbind(1)
        # Rounding may take the difference below zero; NaN stays NaN.
        std = (square - mean.square()).clamp(min=0).sqrt()
        places = [slot.place for slot in order]
        return [
            Reading(ACTIVATION_MEAN, self._names, mean, places),
            Reading(ACTIVATION_STD, self._names, std, places),
            Reading(ACTIVATION_ABSMAX, self._names, absmax, places),
        ]

    def _elements(self, device: torch.device, slots: Sequence["Slot"]) -> Tensor:
        """What the columns of `pooled` are divided by; kept, for batches mostly have one shape."""
        sizes = [slot.elements for slot in slots]
        if self._sizes[0] != device or self._sizes[1] != sizes:
            divisors = sent([n for size in sizes for n in (size, size, 1)], wide(device), device)
            self._sizes = device, sizes, divisors.view(-1, 3)
        return self._sizes[2]


class _Functions:
    """Dead units behind `F.relu` and the like, under the name of the layer before."""

    def __init__(self) -> None:
        self._windows: dict[str, DeadUnits] = {}
        self._owners: tuple[str, ...] = ()

    def called(self, output: Tensor, name: str, producer: Slot | None) -> None:
        """A ReLU has returned."""
        if name in self._windows or len(self._windows) < _MOST_FUNCTIONS:
            self._windows.setdefault(name, DeadUnits()).add(output, producer)

    def readings(self) -> list[Reading]:
        """The shares of the windows that end with this step."""
        ended = {name: window for name, window in self._windows.items() if window.ends()}
        if not ended:
            return []
        self._owners = _kept(self._owners, [f"relu({name})" for name in self._windows])
        places = [place for place, name in enumerate(self._windows) if name in ended]
        values = shares([window.dead() for window in ended.values()])
        for name in ended:
            self._windows[name] = DeadUnits()
        return [Reading(ACTIVATION_DEAD_FRACTION, self._owners, values, places)]


def _kept(names: tuple[str, ...], now: list[str]) -> tuple[str, ...]:
    """The same tuple as before where nothing has changed: owners are compared by identity."""
    return names if names == tuple(now) else tuple(now)
