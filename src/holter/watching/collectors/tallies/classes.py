"""Predictions of one class among several: confusions, calibration, loss by class and position."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from holter.record.events import (
    FREQUENCY_BINS,
    MOST_CLASSES,
    POSITION_BINS,
    RELIABILITY_BINS,
    ClassCount,
    ClassCounts,
    Confusion,
    FrequencyBin,
    PassMeasured,
    PositionBin,
)
from holter.record.format import Floats
from holter.record.signals import VAL_BALANCED_ACCURACY, VAL_CALIBRATION_ERROR, Signal
from holter.watching.collectors.loss_calls import Given, wide
from holter.watching.collectors.tallies.reliability import Reliability, bins_of

_TOO_MANY = 1 << 18  # classes: a vocabulary has fewer
_LISTED = 100  # classes of more than MOST_CLASSES that are written one by one
_CONFUSIONS = 1000
_BY_FREQUENCY = 100  # classes from which on they are grouped by frequency, as tokens are

Sums = npt.NDArray[np.float64]


class ClassTally:
    """Counts by class. Up to MOST_CLASSES every pair of target and prediction is counted."""

    def __init__(self, call: Given) -> None:
        self._classes = number = call.prediction.shape[call.axis]
        device, dtype = call.prediction.device, wide(call.prediction)
        self._is_likelihood = call.function != "multi_margin_loss"
        self._is_paired = number <= MOST_CLASSES
        # One row more than classes, for what is ignored: a mask would wait for the device.
        self._each = torch.zeros(number + 1, 4, dtype=dtype, device=device)
        pairs = (number + 1) * number if self._is_paired else 0
        self._pairs = torch.zeros(pairs, dtype=dtype, device=device)
        self._reliability = Reliability(dtype, device)
        self._positions = torch.zeros(POSITION_BINS + 1, 2, dtype=dtype, device=device)
        self._width = 1  # positions in a bin
        self._longest = 0  # positions seen
        self._total = self._read = 0

    @staticmethod
    def counts(call: Given) -> bool:
        """Whether the classes are few enough to count."""
        return 1 < call.prediction.shape[call.axis] <= _TOO_MANY

    def add(self, call: Given, width: int | None) -> None:
        """Count the targets of a call."""
        thin = call.thinned()
        scores = thin.prediction.movedim(thin.axis, -1).reshape(-1, self._classes)
        if scores.dtype in (torch.float16, torch.bfloat16):
            scores = scores.float()
        target = thin.target.argmax(thin.axis) if call.is_soft else thin.target
        target = target.reshape(-1).long()
        known = (target >= 0) & (target < self._classes)
        if call.ignored is not None:
            known &= target != call.ignored
        label = target.clamp(0, self._classes - 1)
        place = torch.where(known, label, self._classes)
        top, answer = scores.max(1)
        right = answer == target
        self._total += call.prediction.numel() // self._classes
        self._read += len(target)
        loss = self._losses(scores, top, label, place, right)
        dtype = self._each.dtype
        rows = torch.stack([torch.ones_like(loss), torch.zeros_like(loss), right, loss], 1)
        self._each.index_add_(0, place, rows.to(dtype))
        ones = torch.ones_like(place, dtype=dtype)
        if self._is_paired:
            self._pairs.index_add_(0, place * self._classes + answer, ones)
        else:
            guess = torch.where(known, answer, self._classes)
            self._each[:, 1].index_add_(0, guess, ones)
        if width is not None and not call.is_soft:
            self._add_positions(call, width, loss, known)

    def _losses(
        self, scores: Tensor, top: Tensor, label: Tensor, place: Tensor, right: Tensor
    ) -> Tensor:
        """Return the cross-entropy of each target, and count how confident its prediction was."""
        if not self._is_likelihood:
            return torch.full_like(top, torch.nan)
        normaliser = scores.logsumexp(1)
        confidence = (top - normaliser).exp()
        self._reliability.add(confidence, right, place < self._classes)
        return normaliser - scores.gather(1, label[:, None]).squeeze(1)

    def _add_positions(self, call: Given, width: int, loss: Tensor, known: Tensor) -> None:
        self._longest = max(self._longest, width)
        while self._longest > POSITION_BINS * self._width:
            halves = self._positions[:-1].reshape(-1, 2, 2).sum(1)
            self._positions[:-1] = torch.cat([halves, torch.zeros_like(halves)])
            self._width *= 2
        device = call.target.device
        if call.target.dim() == 2:
            places = torch.arange(width, device=device).expand(call.target.shape)
        else:
            places = torch.arange(len(call.target), device=device) % width
        thin = replace(call, target=places).thinned().target.reshape(-1)
        place = torch.where(known, thin // self._width, POSITION_BINS)
        rows = torch.stack([torch.ones_like(loss), loss], 1)
        self._positions.index_add_(0, place, rows.to(self._positions.dtype))

    def _sums(self) -> Tensor:
        """Return support, predictions, hits and loss of each class."""
        each = self._each[:-1]
        if not self._is_paired:
            return each
        pairs = self._pairs.reshape(-1, self._classes)[:-1]
        return torch.stack([each[:, 0], pairs.sum(0), each[:, 2], each[:, 3]], 1)

    def readings(self) -> dict[Signal, Tensor]:
        """Return balanced accuracy and calibration error."""
        support, right = self._each[:-1, 0], self._each[:-1, 2]
        recalls = right / support.clamp(min=1)
        values = {VAL_BALANCED_ACCURACY: recalls.sum() / (support > 0).sum()}
        if self._is_likelihood:
            values[VAL_CALIBRATION_ERROR] = self._reliability.error()
        return values

    def values(self) -> Tensor:
        """Return all sums in a row."""
        pairs = self._pairs[: self._classes**2] if self._is_paired else self._pairs
        parts = (self._sums(), self._reliability.sums, self._positions[:-1], pairs)
        return torch.cat([part.reshape(-1) for part in parts])

    def told(self, owner: str, values: Floats) -> PassMeasured | None:
        """Return the counts of the pass."""
        sizes = np.cumsum([4 * self._classes, 3 * RELIABILITY_BINS, 2 * POSITION_BINS])
        each, reliability, positions, pairs = np.split(values.astype(np.float64), sizes)
        sums = each.reshape(-1, 4)
        support = sums[:, 0]
        if not support.sum():
            return None
        present = support > 0
        counts = ClassCounts(
            number=self._classes,
            present=int(present.sum()),
            right=int(sums[:, 2].sum()),
            largest=int(support.max()),
            recall=float((sums[present, 2] / support[present]).mean()),
            each=_listed(sums),
            confusions=_confusions(pairs.reshape(-1, self._classes)) if self._is_paired else (),
            reliability=bins_of(reliability) if self._is_likelihood else (),
            positions=self._position_bins(positions.reshape(-1, 2)) if self._longest else (),
            frequencies=_frequencies(sums) if self._classes >= _BY_FREQUENCY else (),
        )
        return PassMeasured(owner, int(support.sum()), self._read / self._total, classes=counts)

    def _position_bins(self, sums: Sums) -> tuple[PositionBin, ...]:
        width = self._width
        return tuple(
            PositionBin(
                place * width, min((place + 1) * width, self._longest) - 1, int(count), loss / count
            )
            for place, (count, loss) in enumerate(sums.tolist())
            if count
        )


def _listed(sums: Sums) -> tuple[ClassCount, ...]:
    """Return the classes that occur; of very many the most frequent."""
    at = np.flatnonzero(sums[:, :2].any(1))
    if len(sums) > MOST_CLASSES:
        at = np.sort(np.argsort(-sums[:, 0], kind="stable")[:_LISTED])
    rows = sums[at].tolist()
    return tuple(
        ClassCount(int(n), int(s), int(p), int(r), loss / s if s else float("nan"))
        for n, (s, p, r, loss) in zip(at, rows, strict=True)
    )


def _confusions(pairs: Sums) -> tuple[Confusion, ...]:
    wrong = pairs.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_CONFUSIONS]
    places = zip(*np.unravel_index(order, wrong.shape), strict=True)
    return tuple(
        Confusion(int(row), int(column), int(wrong[row, column]))
        for row, column in places
        if wrong[row, column]
    )


def _frequencies(sums: Sums) -> tuple[FrequencyBin, ...]:
    """Return the classes in groups of about as many targets each, the rarest first."""
    order = np.argsort(sums[:, 0], kind="stable")
    sums = sums[order][sums[order, 0] > 0]
    support = sums[:, 0]
    middle = (support.cumsum() - support / 2) / support.sum()
    groups = [sums[(middle * FREQUENCY_BINS).astype(int) == n] for n in range(FREQUENCY_BINS)]
    return tuple(
        FrequencyBin(
            len(group),
            int(group[:, 0].sum()),
            int(group[:, 2].sum()),
            float(group[:, 3].sum() / group[:, 0].sum()),
        )
        for group in groups
        if len(group)
    )
