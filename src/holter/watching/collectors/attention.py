"""Logits and entropy of attention, of a few samples and positions."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from holter.record.signals import ATTENTION_ENTROPY, ATTENTION_LOGIT_ABSMAX, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import Attended, BackwardBegins, Depth
from holter.watching.collectors.outputs import gathered, readable

_SAMPLES, _HEADS, _QUERIES, _KEYS = 2, 16, 64, 512  # how much of a call is read
_CALLS = 128  # how many calls of a step are
_TOGETHER = 4  # calls that are computed at once: their parts take memory until then


class _Call(NamedTuple):
    """A part of a call: copies, because a script may go on to change or drop what it gave."""

    query: Tensor  # samples, heads, some positions, size
    key: Tensor
    mask: Tensor | None
    is_causal: bool
    scale: float
    every: int  # positions of which one is read

    @property
    def kind(self) -> object:
        """What calls have in common that can be computed together."""
        query, key, mask = self.query, self.key, self.mask
        masked = None if mask is None else (mask.shape, mask.dtype)
        rest = query.shape, key.shape, masked, self.is_causal, self.scale, self.every
        return query.device, query.dtype, key.dtype, *rest


class Attention:
    """Computes a part of the logits again, of calls before the step's first backward."""

    emits: ClassVar[tuple[Signal, ...]] = (ATTENTION_LOGIT_ABSMAX, ATTENTION_ENTROPY)
    at: ClassVar[tuple[type, ...]] = (Attended, BackwardBegins)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = (Attended,)

    def __init__(self) -> None:
        self._owners: tuple[str, ...] = ()
        self._waiting: list[_Call] = []  # all of one kind
        self._rows: list[Tensor] = []  # of each call: largest logit, entropy
        self._calls = 0

    def read(self, moment: Attended | BackwardBegins) -> Iterable[Reading]:
        """A value for each call, when the first backward of a step begins."""
        if isinstance(moment, Attended):
            call = _part(moment) if self._calls < _CALLS else None
            if call is not None:
                self._calls += 1
                waiting = self._waiting
                if waiting and (len(waiting) == _TOGETHER or waiting[0].kind != call.kind):
                    self._compute()
                self._waiting.append(call)
        elif moment.opens_step:
            self._compute()
            rows, self._rows, self._calls = self._rows, [], 0
            if rows:
                largest, entropy = gathered(rows).unbind(1)
                if len(largest) != len(self._owners):
                    self._owners = tuple(f"attention {place}" for place in range(len(largest)))
                return (
                    Reading(ATTENTION_LOGIT_ABSMAX, self._owners, largest),
                    Reading(ATTENTION_ENTROPY, self._owners, entropy),
                )
        return ()

    def _compute(self) -> None:
        calls, self._waiting = self._waiting, []
        if calls:
            self._rows.append(_rows(calls))


@torch.no_grad()
def _part(call: Attended) -> _Call | None:
    """The part of a call that is read; None if it is no use."""
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
    reach = min(query.shape[2], _KEYS)
    every = -(-reach // _QUERIES)
    shared = query.shape[1] // key.shape[1]  # queries of several heads may share their keys
    heads = -(-min(query.shape[1], _HEADS) // shared)
    if mask is not None:
        mask = mask.detach().expand(*query.shape[:3], key.shape[2])
        mask = mask[:_SAMPLES, :_HEADS, :reach:every, :_KEYS].clone()
    few = query[:_SAMPLES, :_HEADS, :reach:every].clone()
    return _Call(few, key[:_SAMPLES, :heads, :_KEYS].clone(), mask, call.is_causal, scale, every)


@torch.no_grad()
def _rows(calls: Sequence[_Call]) -> Tensor:
    """Largest logit and entropy of each of some calls of one kind, on their device."""
    first = calls[0]
    with torch.autocast(first.query.device.type, enabled=False):
        queries = torch.stack([call.query for call in calls]).float()
        keys = torch.stack([call.key for call in calls]).float()
        heads = queries.shape[2]
        if keys.shape[2] != heads:
            keys = keys.repeat_interleave(-(-heads // keys.shape[2]), 2)[:, :, :heads]
        logits = queries @ keys.transpose(3, 4) * first.scale
        largest = logits.abs().amax((1, 2, 3, 4))
        allowed = torch.ones_like(logits, dtype=torch.bool)
        masks = [call.mask for call in calls if call.mask is not None]
        if masks:
            given = torch.stack(masks)
            if given.dtype == torch.bool:
                allowed = given
            else:
                logits, allowed = logits + given.float(), given > torch.finfo(given.dtype).min / 2
        if first.is_causal:
            reach = logits.shape[3]
            places = torch.arange(0, reach * first.every, first.every, device=logits.device)
            causal = torch.arange(logits.shape[4], device=logits.device) <= places[:, None]
            allowed = allowed & causal
        return torch.stack([largest, _entropy(logits, allowed)], 1)


def _entropy(logits: Tensor, allowed: Tensor) -> Tensor:
    """Of each call the entropy of all rows over the most that it could be.

    A row that sees nothing has none.
    """
    lowest = torch.finfo(logits.dtype).min
    shares = torch.softmax(torch.where(allowed, logits, lowest), dim=-1)
    shares = torch.where(allowed, shares, 0.0)
    entropy: Tensor = torch.special.entr(shares).sum((1, 2, 3, 4))
    return entropy / allowed.sum(dim=-1).clamp(min=1).log().sum((1, 2, 3))
