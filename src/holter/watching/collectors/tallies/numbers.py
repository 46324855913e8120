"""Predictions of numbers: moments of targets and residuals, and a histogram of residuals."""

import numpy as np
import torch
from torch import Tensor

from holter.record.events import OCTAVE_BINS, OCTAVES, NumberSums, PassMeasured
from holter.record.format import Floats
from holter.record.signals import VAL_R2, Signal
from holter.watching.collectors.loss_calls import Given, wide
from holter.watching.collectors.tallies.units import by_unit, thinned, units_of

_BINS = 2 * OCTAVES * OCTAVE_BINS  # of one sign


class NumberTally:
    """Sums of targets, predictions and residuals by unit; what is not finite is left out."""

    def __init__(self, call: Given) -> None:
        self._units = units_of(call)
        device, dtype = call.prediction.device, wide(call.prediction)
        self._sums = torch.zeros(7, self._units, dtype=dtype, device=device)
        self._residuals = torch.zeros(2 * _BINS + 2, dtype=dtype, device=device)
        self._total = self._read = 0

    @staticmethod
    def counts(call: Given) -> bool:
        """Whether there is one target for each prediction."""
        return call.prediction.shape == call.target.shape

    def add(self, call: Given, width: int | None) -> None:  # noqa: ARG002
        """Add the targets of a call."""
        thin = thinned(call, self._units)
        dtype = self._sums.dtype
        predicted = thin.prediction.to(dtype)
        if call.function == "poisson_nll_loss" and call.arguments.get("log_input", True):
            predicted = predicted.exp()
        target = thin.target.to(dtype)
        self._total += call.target.numel()
        self._read += target.numel()
        residual = predicted - target
        known = torch.isfinite(residual)
        zero = torch.zeros_like(residual)
        predicted, target, residual = (
            torch.where(known, values, zero) for values in (predicted, target, residual)
        )
        columns = (
            known.to(dtype), target, target.square(), residual, residual.square(), residual.abs(),
            predicted.square(),
        )  # fmt: skip
        self._sums += by_unit(columns, self._units).sum((1, 3))
        self._add_residuals(residual.reshape(-1), known.reshape(-1))

    def _add_residuals(self, residual: Tensor, known: Tensor) -> None:
        size = residual.abs().log2()
        place = ((size + OCTAVES) * OCTAVE_BINS).floor().clamp(0, _BINS - 1).long()
        place = place.clamp(0, _BINS - 1) + (residual > 0) * _BINS
        place = torch.where(residual == 0, 2 * _BINS, place)
        place = torch.where(known, place, 2 * _BINS + 1)
        self._residuals.index_add_(0, place, torch.ones_like(residual))

    def readings(self) -> dict[Signal, Tensor]:
        """Return the share of the variance that is explained."""
        count, total, squares, _, residuals, _, _ = self._sums.unbind(0)
        variation = squares - total.square() / count.clamp(min=1)
        return {VAL_R2: 1 - residuals.sum() / variation.sum()}

    def values(self) -> Tensor:
        """Return all sums in a row, means in the place of what could cancel in single precision."""
        count, total, squares, bias, residuals, absolute, predicted = self._sums.unbind(0)
        rows = count.clamp(min=1)
        variance = (squares - total.square() / rows).sum()
        spread = (predicted - (total + bias).square() / rows).sum()
        means = torch.stack(
            [total.sum(), variance, bias.sum(), absolute.sum(), residuals.sum(), spread]
        )
        number = count.sum()
        return torch.cat([number.reshape(1), means / number.clamp(min=1), self._residuals[:-1]])

    def told(self, owner: str, values: Floats) -> PassMeasured | None:
        """Return the moments of the pass."""
        count, *means = values[:7].astype(np.float64).tolist()
        if not count:
            return None
        below, above, exact = np.split(values[7:].astype(int), [_BINS, 2 * _BINS])
        mean, variance, bias, absolute, square, spread = means
        sums = NumberSums(
            self._units,
            mean,
            max(variance, 0.0),
            bias,
            absolute,
            square,
            max(spread, 0.0),
            tuple(below.tolist()),
            tuple(above.tolist()),
            int(exact[0]),
        )
        return PassMeasured(owner, int(count), self._read / self._total, numbers=sums)
