"""Predictions of yes or no: counts of each unit, and a histogram of scores."""

import math

import numpy as np
import torch
from torch import Tensor

from holter.record.events import (
    RELIABILITY_BINS,
    SCORE_BINS,
    SCORE_LIMIT,
    PassMeasured,
    ScoreCounts,
    UnitCount,
)
from holter.record.format import Floats
from holter.record.signals import VAL_BALANCED_ACCURACY, VAL_CALIBRATION_ERROR, Signal
from holter.watching.collectors.loss_calls import Given, wide
from holter.watching.collectors.tallies.reliability import Reliability, bins_of
from holter.watching.collectors.tallies.units import by_unit, thinned, units_of


class BinaryTally:
    """Counts by unit, and all units together by score. Targets between yes and no void it."""

    def __init__(self, call: Given) -> None:
        self._units = units_of(call)
        device, dtype = call.prediction.device, wide(call.prediction)
        self._each = torch.zeros(4, self._units, dtype=dtype, device=device)
        self._scores = torch.zeros(2 * SCORE_BINS, dtype=dtype, device=device)
        self._undecided = torch.zeros(1, dtype=dtype, device=device)
        self._reliability = Reliability(dtype, device)
        self._total = self._read = 0

    @staticmethod
    def counts(call: Given) -> bool:
        """Whether there is one target for each prediction."""
        return call.prediction.shape == call.target.shape

    def add(self, call: Given, width: int | None) -> None:  # noqa: ARG002
        """Count the targets of a call."""
        thin = thinned(call, self._units)
        target, logit = thin.target.float(), thin.prediction.float()
        if call.function == "binary_cross_entropy":
            logit = torch.logit(logit, eps=1e-7)
        if call.function == "soft_margin_loss":
            target = (target + 1) / 2
        least, largest = torch.aminmax(target)
        self._undecided += ((target != least) & (target != largest)).sum()
        yes, guess = target > 0.5, logit > 0
        self._total += call.target.numel()
        self._read += target.numel()
        columns = (torch.ones_like(yes), yes, guess, yes & guess)
        self._each += by_unit(columns, self._units).sum((1, 3), dtype=self._each.dtype)
        logit, yes = logit.reshape(-1), yes.reshape(-1)
        place = ((logit + SCORE_LIMIT) * (SCORE_BINS / (2 * SCORE_LIMIT))).floor()
        place = place.clamp(0, SCORE_BINS - 1).long().clamp(0, SCORE_BINS - 1) + yes * SCORE_BINS
        ones = torch.ones_like(place, dtype=self._scores.dtype)
        self._scores.index_add_(0, place, ones)
        self._reliability.add(logit.sigmoid(), yes)

    def readings(self) -> dict[Signal, Tensor]:
        """Return calibration error, and balanced accuracy if there is one unit."""
        undecided = self._undecided > 0
        values = {VAL_CALIBRATION_ERROR: self._reliability.error()}
        if self._units == 1:
            count, yes, guess, right = self._each.unbind(0)
            no = count - yes
            recalls = right / yes.clamp(min=1) + (no - guess + right) / no.clamp(min=1)
            values[VAL_BALANCED_ACCURACY] = recalls / ((yes > 0).long() + (no > 0).long())
        return {s: torch.where(undecided, math.nan, value) for s, value in values.items()}

    def values(self) -> Tensor:
        """Return all sums in a row."""
        parts = (self._undecided, self._each, self._scores, self._reliability.sums)
        return torch.cat([part.reshape(-1) for part in parts])

    def told(self, owner: str, values: Floats) -> PassMeasured | None:
        """Return the counts of the pass; None if some targets are neither yes nor no."""
        sizes = np.cumsum([1, 4 * self._units, SCORE_BINS, SCORE_BINS])
        undecided, each, no, yes, reliability = np.split(values.astype(np.float64), sizes)
        if undecided[0] or not each.sum():
            return None
        assert len(reliability) == 3 * RELIABILITY_BINS
        columns = each.reshape(4, -1).astype(int)
        counts = ScoreCounts(
            units=self._units,
            each=tuple(UnitCount(unit, *row) for unit, row in enumerate(columns[1:].T.tolist())),
            yes=tuple(yes.astype(int).tolist()),
            no=tuple(no.astype(int).tolist()),
            reliability=bins_of(reliability),
        )
        share = self._read / self._total
        return PassMeasured(owner, int(columns[0].sum()), share, scores=counts)
