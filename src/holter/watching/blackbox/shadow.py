"""Shadow: periodic snapshots of weights, buffers and optimizer state in host memory."""

import math
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.watching.blackbox.ring import Rates, Settings
from holter.watching.numbers import GroupNumbers, names_of_settings
from holter.watching.stats.shards import local

_PLAIN = (bool, int, float, str, type(None))
_ALIGNED = 64  # bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a training before `step`: tensors by name, and plain values."""

    step: int
    tensors: Mapping[str, Tensor]
    plain: Mapping[str, Any] = field(default_factory=dict)


class TooLargeError(Exception):
    """A snapshot takes more memory than it may."""

    def __init__(self, nbytes: int) -> None:
        super().__init__(nbytes)
        self.nbytes = nbytes


class Shadow:
    """Snapshots of the state of a training, in as many copies as there is room for.

    Of two copies, which are taken in turn, one is always whole. A single one is not while it is
    replaced. On a GPU the copy runs on a stream of its own, behind the next forward and backward:
    weights are not written before the next update, which waits for the copy on the device, not on
    the host.
    """

    def __init__(
        self,
        models: Mapping[str, nn.Module],
        optimizers: Mapping[str, Optimizer],
        *,
        copies: int = 2,
        limit: float = math.inf,
    ) -> None:
        # Weak: a snapshot must not keep alive what the script has deleted.
        self._weak = {label: weakref.ref(optimizer) for label, optimizer in optimizers.items()}
        self._weak_models = {label: weakref.ref(model) for label, model in models.items()}
        self._limit = limit  # bytes of all copies
        self._rooms = [_Room() for _ in range(copies)]
        self._taken: list[tuple[int, Mapping[str, Any]] | None] = [None] * copies
        self._turn = 0
        self._hyperparameters: tuple[Rates, Settings] = (), ()
        # Those of each optimizer; at first, they differ from what it has.
        self._numbers = [(each, GroupNumbers(())) for each in self._weak.values()]
        self._stream: torch.cuda.Stream | None = None
        self.copying: tuple[Any, Any] | None = None  # events before and after a copy under way
        self._copied: tuple[Any, Any] | None = None
        self._making: threading.Thread | None = None

    @property
    def copies(self) -> int:
        """Number of snapshots that are kept."""
        return len(self._rooms)

    @property
    def _models(self) -> dict[str, nn.Module]:
        live = {label: reference() for label, reference in self._weak_models.items()}
        return {label: model for label, model in live.items() if model is not None}

    @property
    def _optimizers(self) -> dict[str, Optimizer]:
        live = {label: reference() for label, reference in self._weak.items()}
        return {label: optimizer for label, optimizer in live.items() if optimizer is not None}

    def hyperparameters(self) -> tuple[Rates, Settings]:
        """Return the learning rates of each optimizer's groups, and their other numbers.

        A rate is NaN where it is on a GPU or unknown. Both are those of the last call while nothing
        changes, because they are kept for every step.
        """
        for reference, numbers in self._numbers:
            if not numbers.are_those_of(_groups_of(reference)):
                self._numbers = [
                    (each, GroupNumbers(_groups_of(each))) for each in self._weak.values()
                ]
                self._hyperparameters = self._read()
                break
        return self._hyperparameters

    def _read(self) -> tuple[Rates, Settings]:
        optimizers = self._optimizers.values()
        rates = tuple(
            tuple(_number(group.get("lr", math.nan)) for group in optimizer.param_groups)
            for optimizer in optimizers
        )
        settings = tuple(
            tuple(
                {name: group[name] for name in names_of_settings(group)}
                for group in optimizer.param_groups
            )
            for optimizer in optimizers
        )
        return rates, settings

    def is_ready(self) -> bool:
        """Whether there is memory to copy to; a thread pins it, which is slow."""
        if self._making is not None:
            if self._making.is_alive():
                return False
            self._making = None
            return True
        state = self._state()
        on_gpu = any(tensor.is_cuda for tensor in state.values())
        if not on_gpu or all(room.fits(state) for room in self._rooms):
            return True
        self._check(state)
        self._making = threading.Thread(target=self._make_room, args=(state,), daemon=True)
        self._making.start()
        return False

    def take(self, step: int) -> None:
        """Copy the state as it is before `step`; on a GPU, begin to."""
        state = self._state()
        self._check(state)
        turn, self._turn = self._turn, (self._turn + 1) % self.copies
        self._taken[turn] = None  # not whole while it is written
        copies = self._rooms[turn].hold(state)
        sources, targets = list(state.values()), [copies[name] for name in state]
        on_gpu = [place for place, tensor in enumerate(sources) if tensor.is_cuda]
        volatile = {id(b) for model in self._models.values() for b in model.buffers()}
        with torch.no_grad():
            if on_gpu:  # the next forward writes into buffers: these are copied at once
                still = [
                    s.clone() if id(s) in volatile else s for s in (sources[p] for p in on_gpu)
                ]
                self._copy_behind(still, [targets[p] for p in on_gpu])
            on_host = [place for place, tensor in enumerate(sources) if not tensor.is_cuda]
            if on_host:
                torch._foreach_copy_([targets[p] for p in on_host], [sources[p] for p in on_host])
        self._taken[turn] = (step, plain_state(self._optimizers))

    def close(self) -> None:
        """Give the memory back."""
        if self._making is not None:
            self._making.join()
        if self._stream is not None:
            self._stream.synchronize()
        self._taken = [None] * self.copies
        for room in self._rooms:
            room.close()

    def _state(self) -> dict[str, Tensor]:
        return state_tensors(self._models, self._optimizers)

    def _check(self, state: Mapping[str, Tensor]) -> None:
        nbytes = self.copies * bytes_of(state)
        if nbytes > self._limit:
            raise TooLargeError(nbytes)

    def _make_room(self, state: Mapping[str, Tensor]) -> None:
        for room in self._rooms:
            room.hold(state)

    def before_update(self) -> None:
        """Let an update wait, on the device, for a copy that is under way."""
        if self.copying is not None:
            torch.cuda.current_stream().wait_event(self.copying[1])
            self._copied, self.copying = self.copying, None

    @property
    def cost(self) -> float | None:
        """Seconds of the device's last copy, None while they are not known.

        A device has one engine that copies to the host: other copies wait for ours, and whoever
        waits for these. So all of it counts.
        """
        if self._stream is None:
            return 0.0
        if self._copied is None or not self._copied[1].query():
            return None
        return float(self._copied[0].elapsed_time(self._copied[1])) / 1e3

    @property
    def oldest(self) -> int:
        """The step before which the oldest copy was taken; 0 while there is none for each turn."""
        return min(0 if taken is None else taken[0] for taken in self._taken)

    def newest_before(self, step: int) -> Snapshot | None:
        """The latest copy of a state from before `step`; waits for one that is under way."""
        if self._stream is not None:
            self._stream.synchronize()
        snapshots = [
            Snapshot(taken[0], self._rooms[turn].tensors, taken[1])
            for turn, taken in enumerate(self._taken)
            if taken is not None and taken[0] <= step
        ]
        return max(snapshots, key=lambda snapshot: snapshot.step, default=None)

    def _copy_behind(self, sources: list[Tensor], targets: list[Tensor]) -> None:
        if self._stream is None:
            self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            self.copying = _timer(), _timer()
            self.copying[0].record(self._stream)
            for source, target in zip(sources, targets, strict=True):
                target.copy_(source, non_blocking=True)
                source.record_stream(self._stream)
            self.copying[1].record(self._stream)


class _Room:
    """Host memory for one snapshot: one block of the size of the state, pinned for a GPU.

    The allocator of torch for pinned memory would round the size of each tensor up to a power of
    two, so the block is pinned by itself.
    """

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._block = torch.empty(0, dtype=torch.uint8)
        self._is_pinned = False

    def fits(self, state: Mapping[str, Tensor]) -> bool:
        """Whether there is a place for each tensor of a state, and for no others."""
        return self.tensors.keys() == state.keys() and all(
            held.shape == tensor.shape and held.dtype == tensor.dtype
            for held, tensor in zip(self.tensors.values(), state.values(), strict=True)
        )

    def hold(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return a place for each tensor of a state."""
        if not self.fits(state):
            self.close()
            self._block = torch.empty(bytes_of(state), dtype=torch.uint8)
            if any(tensor.is_cuda for tensor in state.values()):
                self._pin()
            start = 0
            for name, tensor in state.items():
                part = self._block[start : start + tensor.nbytes]
                self.tensors[name] = part.view(tensor.dtype).view(tensor.shape)
                start += _aligned(tensor.nbytes)
        return self.tensors

    def close(self) -> None:
        """Give the memory back; what is being written to disk keeps it a little longer."""
        if self._is_pinned:
            self._is_pinned = False
            _cuda_runtime().cudaHostUnregister(self._block.data_ptr())
        self.tensors = {}
        self._block = torch.empty(0, dtype=torch.uint8)

    def _pin(self) -> None:
        """Pin the block; where that fails, copies wait for it, and are made more rarely."""
        self._block.zero_()  # pages that exist: the driver, which others wait for, is quicker then
        code = _cuda_runtime().cudaHostRegister(self._block.data_ptr(), self._block.nbytes, 0)
        self._is_pinned = int(code) == 0


def bytes_of(state: Mapping[str, Tensor]) -> int:
    """Return the host memory that one snapshot of a state takes."""
    return sum(_aligned(tensor.nbytes) for tensor in state.values())


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNED) * _ALIGNED


def _cuda_runtime() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]


def state_tensors(
    models: Mapping[str, nn.Module], optimizers: Mapping[str, Optimizer]
) -> dict[str, Tensor]:
    """Every tensor of the state by name: `model/weight`, `optimizer/0/exp_avg`.

    Of a sharded tensor it is the shard that is here.
    """
    tensors: dict[str, Tensor] = {}
    for label, model in models.items():
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            tensors[f"model/{label}/{name}"] = tensor.detach()
    for label, optimizer in optimizers.items():
        for place, parameter in enumerate(held_by(optimizer)):
            for name, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, Tensor):
                    tensors[f"optimizer/{label}/{place}/{name}"] = value.detach()
    names = list(tensors)
    return dict(zip(names, local([tensors[name] for name in names]), strict=True))


def plain_state(optimizers: Mapping[str, Optimizer]) -> dict[str, Any]:
    """What optimizers keep besides tensors: settings of groups, and counts."""
    return {
        label: {
            "class": type(optimizer).__name__,
            "shapes": [list(parameter.shape) for parameter in held_by(optimizer)],
            "groups": [
                {
                    key: value.tolist() if isinstance(value, Tensor) else value
                    for key, value in group.items()
                    if key != "params" and _is_plain(value)
                }
                for group in optimizer.param_groups
            ],
            "state": {
                str(place): {
                    key: value
                    for key, value in optimizer.state.get(parameter, {}).items()
                    if isinstance(value, _PLAIN)
                }
                for place, parameter in enumerate(held_by(optimizer))
            },
        }
        for label, optimizer in optimizers.items()
    }


def _groups_of(reference: "weakref.ref[Optimizer]") -> list[dict[str, Any]]:
    optimizer = reference()
    return [] if optimizer is None else optimizer.param_groups


def held_by(optimizer: Optimizer) -> list[Tensor]:
    """The parameters of an optimizer, group by group."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _timer() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _number(value: Any) -> float:
    return math.nan if isinstance(value, Tensor) and value.is_cuda else float(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(item, _PLAIN) for item in value)
    return isinstance(value, (*_PLAIN, Tensor)) and (
        not isinstance(value, Tensor) or value.numel() == 1
    )
