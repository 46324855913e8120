"""What is measured of the outputs of one module: sums, extremes, dead units, saturation."""

import itertools
import weakref
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from holter.watching.structures import parts

SAMPLES = 1024  # of a unit that is zero for all of them, few come back to life
STEPS = 4  # sampled steps after which a window ends even so
CALLS = 64  # calls of one module after which their readings are folded: memory stays bounded
_DEPTH = 4  # how deep in tuples and mappings a tensor is looked for
_WIDE = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: None,
    torch.float64: None,
}

Count = Tensor | int  # on the CPU numbers are at hand
Row = tuple[Tensor, Tensor, Tensor, Tensor]  # sum, norm, smallest, largest
Saturated = Callable[[Tensor, torch.dtype], tuple[Count, int]]  # how many, of how many


class Slot:
    """One module: its properties, and the statistics of its calls since the step began."""

    __slots__ = (
        "axes",
        "clip_place",
        "clips",
        "elements",
        "is_read_at_once",
        "module",
        "outputs",
        "place",
        "rows",
        "saturated",
        "saturated_in",
        "saturation_place",
        "signed",
        "units",
        "was_called",
        "window",
    )

    def __init__(self, module: nn.Module) -> None:
        self.module = weakref.ref(module)  # a model that is done with may go
        self.place = self.clip_place = self.saturation_place = -1
        self.units, self.axes = _units(module)
        self.signed = isinstance(module, nn.Threshold | nn.Softshrink | nn.Hardshrink)
        self.clips = isinstance(module, nn.ReLU | nn.ReLU6) or (
            self.signed and getattr(module, "value", 0) == 0
        )
        self.window = DeadUnits() if self.clips else None
        self.saturated_in = _saturation(module)
        self.is_read_at_once = False  # its output does not last
        self.forget()

    def forget(self) -> None:
        """Start again; the search for dead units continues."""
        self.rows: list[Row] = []
        self.was_called = False
        self.elements = self.outputs = 0
        self.saturated: Count = 0

    def read(self, output: Tensor) -> Tensor:
        """Leave the sums of one call; return its output as it is best read further."""
        wide = _WIDE[output.dtype]
        if wide is not None and not output.is_cuda:
            output, wide = output.to(wide), None  # one conversion is faster than two on a CPU
        if self.rows and self.rows[0][0].device != output.device:
            return output  # the module has moved since its last call
        if len(self.rows) == CALLS:
            self.rows = [_folded(self.rows)]
        least, largest = torch.aminmax(output)
        norm = torch.linalg.vector_norm(output, dtype=wide)
        self.rows.append((output.sum(dtype=wide), norm, least, largest))
        self.elements += output.numel()
        return output

    def read_units(self, output: Tensor, dtype: torch.dtype, producer: "Slot | None") -> None:
        """Look for dead units and saturation in the output of a call, which had this dtype."""
        if self.window is not None and output.dim():
            self.window.add(output.abs() if self.signed else output, producer)
        if self.saturated_in is not None:
            count, outputs = self.saturated_in(output, dtype)
            self.saturated += count
            self.outputs += outputs


class DeadUnits:
    """The largest output of each unit over some steps; of a dead one it is zero.

    Units are distinguished by the module whose output is clipped: a ReLU that is called behind
    several layers has the units of all of them, one behind a layer called twice has them once.
    """

    def __init__(self) -> None:
        self._largest: dict[tuple[int, int], Tensor] = {}
        self._samples: dict[tuple[int, int], int] = {}
        self._steps = 0

    def add(self, output: Tensor, producer: Slot | None) -> None:
        """One call, with outputs that are not negative."""
        axis = _axis(output, producer)
        units, last = output.shape[axis], output.dim() - 1
        if axis == last:
            largest = output.reshape(-1, units).amax(0)
            samples = output.numel() // units
        else:
            largest = output.amax([other for other in range(last + 1) if other != axis])
            samples = output.shape[0] if axis else 1
        key = (-1 if producer is None else producer.place, units)
        before = self._largest.get(key)
        same = before is not None and before.device == largest.device
        if before is not None and same:
            largest = torch.maximum(before, largest)
        self._largest[key] = largest
        self._samples[key] = samples + (self._samples[key] if same else 0)

    def ends(self) -> bool:
        """Count a step, and say whether the window has seen enough."""
        if not self._largest:
            return False
        self._steps += 1
        return self._steps >= STEPS or min(self._samples.values()) >= SAMPLES

    def dead(self) -> tuple[Count, int]:
        """How many units are dead, of how many."""
        dead: Count = 0
        for largest in self._largest.values():
            dead += _count(largest == 0)
        return dead, sum(units for _, units in self._largest)


def readable(
    output: Any, depth: int = _DEPTH, kinds: Container[torch.dtype] = _WIDE
) -> Tensor | None:
    """The first tensor in what a module returned that has numbers to read; else None."""
    if isinstance(output, Tensor):
        if (
            # DTensor, fake, functional and the like
            (type(output) not in (Tensor, nn.Parameter) and not output.is_nested)
            or output.dtype not in kinds
            or (output.layout is not torch.strided and not output.is_nested)
            or output.is_meta
            or not output.numel()
            or torch._C._functorch.is_functorch_wrapped_tensor(output)  # noqa: SLF001
            or torch._C._is_tracing()  # noqa: SLF001
            or (output.is_cuda and torch.cuda.is_current_stream_capturing())
        ):
            return None
        # The samples of a nested tensor lie one behind the other.
        return output.values().detach() if output.is_nested else output.detach()
    if isinstance(output, PackedSequence):
        return readable(output.data, depth, kinds)
    for _, _, part in (parts(output) if depth else None) or ():
        tensor = readable(part, depth - 1, kinds)
        if tensor is not None:
            return tensor
    return None


def _count(mask: Tensor) -> Count:
    """How many are true."""
    return mask.sum() if mask.device.type != "cpu" else int(np.count_nonzero(mask.numpy()))


def shares(counts: Sequence[tuple[Count, int]]) -> Tensor:
    """Each count over its total, on one device."""
    shares = [count / total for count, total in counts]
    there = next((share.device for share in shares if isinstance(share, Tensor)), None)
    if there is None:
        return torch.tensor(shares, dtype=torch.float32, device="cpu")
    # A number becomes a tensor of the device without a transfer.
    return torch.stack(
        [
            share.to(there, non_blocking=True)
            if isinstance(share, Tensor)
            else torch.full((), share, device=there)
            for share in shares
        ]
    )


class Sums(NamedTuple):
    """Sum, L2 norm and largest magnitude of some calls: a row for each, and whose it is."""

    rows: Tensor
    slots: Sequence[Slot]


def at_once(slots: Sequence[Slot]) -> list[Sums]:
    """What was read as modules returned, for each device."""
    devices: dict[torch.device, list[Slot]] = {}
    for slot in slots:
        if slot.rows:
            devices.setdefault(slot.rows[0][0].device, []).append(slot)
    found = []
    for there in devices.values():
        table = _table(row for slot in there for row in slot.rows)
        found.append(Sums(table, [slot for slot in there for _ in slot.rows]))
    return found


def pooled(read: Sequence[Sums]) -> tuple[Tensor, list[Slot]]:
    """Sum, sum of squares and largest magnitude over all calls of each slot, and the slots.

    All that is read is on one device. Slots that were called equally often are one block.
    """
    rows = torch.cat([sums.rows.to(wide(sums.rows.device)) for sums in read])
    calls: dict[int, list[int]] = {}
    slots: dict[int, Slot] = {}
    for row, slot in enumerate(slot for sums in read for slot in sums.slots):
        calls.setdefault(id(slot), []).append(row)
        slots[id(slot)] = slot
    keys = sorted(calls, key=lambda key: len(calls[key]))
    order = [row for key in keys for row in calls[key]]
    if order != list(range(len(order))):
        rows = rows[sent(order, torch.int64, rows.device)]
    blocks, start = [], 0
    for often, group in itertools.groupby(keys, key=lambda key: len(calls[key])):
        stop = start + often * sum(1 for _ in group)
        blocks.append(_reduced(rows[start:stop].view(-1, often, 3)))
        start = stop
    return torch.cat(blocks), [slots[key] for key in keys]


def sent(values: Sequence[float], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Numbers as a tensor of a device, without waiting for it."""
    numbers = torch.tensor(values, dtype=dtype, device="cpu")
    if device.type == "cuda":
        numbers = numbers.pin_memory()  # from elsewhere it would wait
    return numbers.to(device, non_blocking=True)


def _reduced(calls: Tensor) -> Tensor:
    total, norm, magnitude = calls.unbind(2)
    return torch.stack([total.sum(1), norm.square().sum(1), magnitude.amax(1)], 1)


def _folded(rows: Sequence[Row]) -> Row:
    """Many calls as if they were one."""
    total, square, magnitude = _reduced(_table(rows).view(1, -1, 3))[0].unbind()
    return total, square.sqrt(), -magnitude, magnitude


def _table(rows: Iterable[Row]) -> Tensor:
    """Sum, norm and largest magnitude of calls."""
    table = torch.stack([value for row in rows for value in row])
    total, norm, least, largest = table.to(wide(table.device)).view(-1, 4).unbind(1)
    return torch.stack([total, norm, torch.maximum(-least, largest)], 1)


def wide(device: torch.device) -> torch.dtype:
    """The widest floating point that a device has."""
    return torch.float32 if device.type == "mps" else torch.float64


def gathered(parts: Sequence[Tensor]) -> Tensor:
    """One tensor of all parts, whatever devices they are on."""
    # From the CPU to a device, never the other way: that would wait for it.
    target = next(
        (tensor.device for tensor in parts if tensor.device.type != "cpu"), parts[0].device
    )
    return torch.cat(
        [
            tensor if tensor.device == target else tensor.to(target, non_blocking=True)
            for tensor in parts
        ]
    )


def _units(module: nn.Module) -> tuple[int, tuple[int, ...]]:
    """How many units a module's output has, and along which axis they may lie; 0 if unknown."""
    if isinstance(module, nn.modules.conv._ConvNd):  # noqa: SLF001
        return module.out_channels, (-1 - len(module.kernel_size), 1)
    if isinstance(module, nn.modules.batchnorm._NormBase):  # noqa: SLF001
        return module.num_features, (1,)
    if isinstance(module, nn.GroupNorm):
        return module.num_channels, (1,)
    if isinstance(module, nn.Linear | nn.Bilinear):
        return module.out_features, (-1,)
    if isinstance(module, nn.LayerNorm | nn.RMSNorm):
        return module.normalized_shape[-1], (-1,)
    if isinstance(module, nn.Embedding | nn.EmbeddingBag):
        return module.embedding_dim, (-1,)
    if isinstance(module, nn.RNNBase):
        size = module.proj_size or module.hidden_size
        return size * (2 if module.bidirectional else 1), (-1,)
    if isinstance(module, nn.RNNCellBase):
        return module.hidden_size, (-1,)
    if isinstance(module, nn.MultiheadAttention):
        return module.embed_dim, (-1,)
    return 0, ()


def _axis(output: Tensor, producer: Slot | None) -> int:
    """The axis of the units: where the layer before has put them, else by the number of axes."""
    dims = output.dim()
    for axis in producer.axes if producer is not None else ():
        if -dims <= axis < dims and producer is not None and output.shape[axis] == producer.units:
            return axis % dims
    return 1 if dims in (4, 5) else dims - 1


def _saturation(module: nn.Module) -> Saturated | None:
    """How to count the saturated outputs of a module; None where that has no meaning."""
    if isinstance(module, nn.Sigmoid):
        return _outside(0.01, 0.99)
    if isinstance(module, nn.Tanh):
        return _outside(-0.97, 0.97)
    if isinstance(module, nn.Hardsigmoid):
        return _at_bounds(0.0, 1.0)
    if isinstance(module, nn.ReLU6):  # at zero it rests; and it is a Hardtanh, too
        return _at_bounds(None, 6.0)
    if isinstance(module, nn.Hardtanh):
        return _at_bounds(module.min_val, module.max_val)
    if isinstance(module, nn.Softmax2d):
        return _decided(-3)
    if isinstance(module, nn.Softmax):
        return _decided(module.dim)
    return None


def _outside(low: float, high: float) -> Saturated:
    def count(output: Tensor, _: torch.dtype) -> tuple[Count, int]:
        return _count((output < low) | (output > high)), output.numel()

    return count


def _at_bounds(low: float | None, high: float) -> Saturated:
    def count(output: Tensor, dtype: torch.dtype) -> tuple[Count, int]:
        # The bounds as the module's dtype has them: in bfloat16, 0.7 is less.
        mask = output >= torch.tensor(high, dtype=dtype, device="cpu").item()
        if low is not None:
            mask |= output <= torch.tensor(low, dtype=dtype, device="cpu").item()
        return _count(mask), output.numel()

    return count


def _decided(dim: int | None) -> Saturated:
    def count(output: Tensor, _: torch.dtype) -> tuple[Count, int]:
        axis = dim if dim is not None else 0 if output.dim() in (0, 1, 3) else 1  # as torch does
        largest = output.amax(axis)
        return _count(largest > 0.99), largest.numel()

    return count
