"""Which rows of a loss a model cannot tell apart: those that come of the same input."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from holter.lab.batches import as_real


@dataclass(frozen=True, slots=True)
class _Prefixes:
    """Places of sequences, grouped by all that stands up to them; `along` is the axis of time."""

    groups: Tensor
    along: int

    def of_rows(self, rows: int) -> Tensor | None:
        count, length = self.groups.shape[1 - self.along], self.groups.shape[self.along]
        if rows % count or not 1 < rows // count <= length:
            return None
        return self.groups.narrow(self.along, 0, rows // count).reshape(-1)


@dataclass(frozen=True, slots=True)
class Sameness:
    """Samples grouped by their inputs, and places of sequences by what stands before them."""

    samples: Tensor  # a group for each sample
    prefixes: tuple[_Prefixes, ...] = ()

    @property
    def repeated(self) -> int:
        """How many samples have an input that another one has already."""
        return len(self.samples) - len(torch.unique(self.samples))

    def of_rows(self, rows: int) -> list[Tensor] | None:
        """Groupings of the rows of a loss, one a sample's place; None where they are not known.

        A model that reads from left to right cannot tell places with the same beginning apart: that
        is another grouping. Which it is, nobody knows here.
        """
        count = len(self.samples)
        if count and rows % count == 0:
            inner = rows // count
            place = torch.arange(rows)
            found = [self.samples[place // inner] * inner + place % inner]
        elif not self.repeated:
            found = [torch.arange(rows)]
        else:
            return None
        return found + [
            cut for prefixe in self.prefixes if (cut := prefixe.of_rows(rows)) is not None
        ]


def sameness(inputs: Sequence[Tensor], count: int) -> Sameness:
    """Of what a model is given for `count` samples."""
    inputs = [as_real(tensor) for tensor in inputs]
    groups = torch.arange(count)
    told = [
        tensor.cpu().movedim(axis, 0)
        for tensor in inputs
        if (axis := by_sample(tensor, count)) is not None
    ]
    if told:
        groups = torch.zeros(count, dtype=torch.long)
        for each in told:
            groups = _ids(torch.stack((groups, _ids(each.reshape(count, -1))), 1))
    found = [each for tensor in inputs for each in _prefixes(tensor)]
    return Sameness(groups, tuple(found))


def by_sample(tensor: Tensor, count: int) -> int | None:
    """The axis along which `count` samples lie: the first, or the next where time comes first."""
    if tensor.dim() and len(tensor) == count:
        return 0
    return 1 if tensor.dim() > 1 and tensor.shape[1] == count else None


def _prefixes(tensor: Tensor) -> list[_Prefixes]:
    """Of tokens, or of rows of numbers: by samples first, and by time first."""
    if tensor.dim() != (3 if tensor.is_floating_point() else 2) or not tensor.numel():
        return []
    values = tensor.detach().cpu()
    words = _ids(values.reshape(values.shape[0] * values.shape[1], -1)).reshape(values.shape[:2])
    return [_Prefixes(_grown(words.T).T.contiguous(), 1), _Prefixes(_grown(words), 0)]


def _grown(words: Tensor) -> Tensor:
    """Of words with time first: a group for each place, the same where all before is the same."""
    groups = torch.zeros_like(words)
    before = torch.zeros_like(words[0])
    for place, word in enumerate(words):
        before = _ids(torch.stack((before, word), 1))
        groups[place] = before + place * len(before)
    return groups


def _ids(rows: Tensor) -> Tensor:
    """A number for each row, the same for the same row."""
    found: Tensor = torch.unique(rows, dim=0, return_inverse=True)[1]
    return found.reshape(-1)
