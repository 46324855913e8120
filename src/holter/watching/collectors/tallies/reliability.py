"""Reliability: how often predictions of some confidence are right."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from holter.record.events import RELIABILITY_BINS, ReliabilityBin


class Reliability:
    """Number, confidence and hits of predictions in bins of equal width."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self._sums = torch.zeros(RELIABILITY_BINS + 1, 3, dtype=dtype, device=device)

    def add(self, confidence: Tensor, right: Tensor, known: Tensor | None = None) -> None:
        """Count predictions; those that are not `known` are left out."""
        place = (confidence * RELIABILITY_BINS).long().clamp(0, RELIABILITY_BINS - 1)
        if known is not None:
            place = torch.where(known, place, RELIABILITY_BINS)
        rows = torch.stack([torch.ones_like(confidence), confidence, right], 1)
        self._sums.index_add_(0, place, rows.to(self._sums.dtype))

    @property
    def sums(self) -> Tensor:
        """Number, confidence and hits of each bin."""
        return self._sums[:-1]

    def error(self) -> Tensor:
        """Return the expected calibration error."""
        count, confidence, right = self.sums.unbind(1)
        return (confidence - right).abs().sum() / count.sum()


def bins_of(values: npt.NDArray[np.float64]) -> tuple[ReliabilityBin, ...]:
    """Return the bins of sums that are on the host."""
    return tuple(
        ReliabilityBin(int(count), confidence, int(right))
        for count, confidence, right in values.reshape(-1, 3).tolist()
    )
