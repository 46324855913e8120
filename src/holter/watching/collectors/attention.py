"""Logits and entropy of attention, of a few samples and positions."""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from holter.record.signals import ATTENTION_ENTROPY, ATTENTION_LOGIT_ABSMAX, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import Attended, BackwardBegins, Depth
from holter.watching.collectors.outputs import gathered, readable

_SAMPLES, _HEADS, _QUERIES, _KEYS = 2, 16, 64, 512  # how much of a call is read
_CALLS = 128  # how many calls of a step are


class Attention:
    """Computes a part of the logits again, of calls before the step's first backward."""

    emits: ClassVar[tuple[Signal, ...]] = (ATTENTION_LOGIT_ABSMAX, ATTENTION_ENTROPY)
    at: ClassVar[tuple[type, ...]] = (Attended, BackwardBegins)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = (Attended,)

    def __init__(self) -> None:
        self._owners: tuple[str, ...] = ()
        self._rows: list[Tensor] = []  # of each call: largest logit, entropy

    def read(self, moment: Attended | BackwardBegins) -> Iterable[Reading]:
        """A value for each call, when the first backward of a step begins."""
        if isinstance(moment, Attended):
            row = _row(moment) if len(self._rows) < _CALLS else None
            if row is not None:
                self._rows.append(row)
        elif moment.opens_step:
            rows, self._rows = self._rows, []
            if rows:
                if len(rows) != len(self._owners):
                    self._owners = tuple(f"attention {place}" for place in range(len(rows)))
                largest, entropy = gathered(rows).unbind(1)
                return (
                    Reading(ATTENTION_LOGIT_ABSMAX, self._owners, largest),
                    Reading(ATTENTION_ENTROPY, self._owners, entropy),
                )
        return ()


def _row(call: Attended) -> Tensor | None:
    """Largest logit and entropy of a part of one call, on their device; None if it is no use."""
    query, key = readable(call.query), readable(call.key)
    if query is None or key is None or query.dim() != key.dim() or query.dim() not in (3, 4):
        return None
    mask = call.mask
    if query.dim() == 3:  # without heads
        query, key = query.unsqueeze(1), key.unsqueeze(1)
        mask = mask.unsqueeze(1) if mask is not None and mask.dim() == 3 else mask
    if query.shape[1] % key.shape[1] or query.shape[0] != key.shape[0] or key.shape[2] < 2:
        return None
    scale = query.shape[3] ** -0.5 if call.scale is None else call.scale
    shape = (*query.shape[:3], key.shape[2])
    reach = min(shape[2], _KEYS)
    every = -(-reach // _QUERIES)
    with torch.no_grad(), torch.autocast(query.device.type, enabled=False):
        few = query[:_SAMPLES, :_HEADS, :reach:every].float()
        shared = query.shape[1] // key.shape[1]  # queries of several heads may share their keys
        heads = -(-few.shape[1] // shared)
        keys = key[:_SAMPLES, :heads, :_KEYS].float().repeat_interleave(shared, 1)
        logits = few @ keys[:, : few.shape[1]].transpose(2, 3) * scale
        largest = logits.abs().amax()
        allowed = torch.ones_like(logits, dtype=torch.bool)
        if mask is not None:
            given = mask.detach().expand(shape)[:_SAMPLES, :_HEADS, :reach:every, :_KEYS]
            if given.dtype == torch.bool:
                allowed = given
            else:
                logits, allowed = logits + given.float(), given > torch.finfo(given.dtype).min / 2
        if call.is_causal:
            places = torch.arange(0, reach, every, device=logits.device)
            causal = torch.arange(logits.shape[3], device=logits.device) <= places[:, None]
            allowed = allowed & causal
        return torch.stack([largest, _entropy(logits, allowed)]).unsqueeze(0)


def _entropy(logits: Tensor, allowed: Tensor) -> Tensor:
    """The entropy of all rows over the most that it could be; a row that sees nothing has none."""
    lowest = torch.finfo(logits.dtype).min
    shares = torch.softmax(torch.where(allowed, logits, lowest), dim=-1)
    shares = torch.where(allowed, shares, 0.0)
    entropy: Tensor = torch.special.entr(shares).sum()
    return entropy / allowed.sum(dim=-1).clamp(min=1).log().sum()
