"""Losses that fall without bound: the number improves forever while the model gets worse."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.curve import Curve, growth, levels
from holter.record import Run
from holter.record.events import CaptureWritten
from holter.record.signals import (
    GRAD_TOTAL_NORM,
    LOSS,
    LOSS_ROOT_SHARE,
    OUTPUT_SIZE,
    WEIGHT_TOTAL_NORM,
    Signal,
)

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

FAR = 1000.0
GROWN = 10.0
MIN_SHARE = 0.9
TOLERANCE = 0.01

WITHOUT_A_FLOOR = ("nll_loss", "gaussian_nll_loss", "poisson_nll_loss", "kl_div")

_FEWEST = 5  # losses
_ENDS = 5  # losses at either end that tell its level
_PIECES = 10
_FASTER = 1.02  # times the fall of one piece by which the next falls at least
_ACCELERATING = 4  # last pieces that each fall faster than the one before
_SUBSTANTIAL = 50.0  # fall below zero, in units of the first loss, that no fit of a density gives


@dataclass(frozen=True, slots=True)
class Descent:
    """How a loss falls without bound."""

    first: float
    end: float
    onset: int
    factor: float | None  # what backward() is called on over the loss function's value
    growing: Signal | None  # outputs, weights or gradients, if they grow with it
    is_negated: bool  # whether a loss with a floor is maximised

    @property
    def is_unbounded(self) -> bool:
        """Whether the loss surely has no floor."""
        return self.is_negated or self.growing is not None


def descent_of(
    facts: "Facts",
    curve: Curve,
    *,
    far: float = FAR,
    grown: float = GROWN,
    min_share: float = MIN_SHARE,
    tolerance: float = TOLERANCE,
) -> Descent:
    """Measure whether a loss falls without bound, and why."""
    first, end = _levels(curve)
    factor = _factor(facts, min_share, tolerance)
    growing = None
    if end < -far * abs(first):
        growing = _growing(facts, curve, (OUTPUT_SIZE, WEIGHT_TOTAL_NORM), grown)
    if growing is None and end < -_SUBSTANTIAL * abs(first) and _accelerates(curve):
        growing = _growing(facts, curve, (GRAD_TOTAL_NORM,), grown)
    below = curve.values < -_SUBSTANTIAL * abs(first)
    return Descent(
        first,
        end,
        onset=int(curve.steps[int(below.argmax())]),
        factor=factor,
        growing=growing,
        is_negated=factor is not None and factor < 0 and facts.loss_function not in WITHOUT_A_FLOOR,
    )


def _levels(curve: Curve) -> tuple[float, float]:
    """Return the largest of the first losses by absolute value, and the final loss."""
    early = curve.values[:10]
    return float(early[np.abs(early).argmax()]), float(np.median(curve.part(0.75)))


def _factor(facts: "Facts", min_share: float, tolerance: float) -> float | None:
    """Return the fixed factor between the loss function's value and the loss, or None."""
    shares = readings(facts, LOSS_ROOT_SHARE, "")
    if len(shares) < _FEWEST:
        return None
    median = float(np.median(shares))
    same = np.abs(shares - median) <= tolerance * abs(median)
    return median if float(np.mean(same)) >= min_share else None


def _accelerates(curve: Curve) -> bool:
    """Return whether each of the last pieces falls faster than the one before."""
    falls = -np.diff(levels(curve, _PIECES).values)[-_ACCELERATING:]
    return bool(
        len(falls) == _ACCELERATING
        and (falls > 0).all()
        and (falls[1:] > _FASTER * falls[:-1]).all()
    )


def _growing(
    facts: "Facts", curve: Curve, signals: tuple[Signal, ...], times: float
) -> Signal | None:
    """Return the first of some signals that has grown by this factor, or None."""
    first, last = curve.span
    half = (first + last) // 2
    for signal in signals:
        for owner, series in facts.run[signal].items() if signal in facts.run else ():
            start = series.first if len(series) else 0
            grew = growth(facts, signal, owner, (start, start + 2), (half, last))
            if grew is not None and grew > times:
                return signal
    return None


@dataclass(frozen=True, slots=True)
class Fall:
    """A loss that was captured far below zero, and ends lower still."""

    owner: str
    step: int  # of the capture
    span: tuple[int, int]
    first: float
    last: float
    says: str


def captured_fall(run: Run) -> Fall | None:
    """Return the fall of a loss that the black box captured, one of several losses maybe; or None.

    Of competing losses, as a GAN has, the curve of the run tells of one only.
    """
    losses = run[LOSS].items() if LOSS in run else ()
    for event in run.events_of(CaptureWritten):
        for owner, series in losses:
            if event.what.alarm != "descent" or event.what.of not in series.steps:
                continue
            first = float(np.median(series.values[:_ENDS]))
            then = float(series.values[series.steps == event.what.of][0])
            last = float(np.median(series.values[-_ENDS:]))
            if last <= then:  # which is not so if it is no number
                says = f"it fell from {first:.3g} to {then:.3g} at step {event.what.of}"
                span = (series.first, series.last)
                return Fall(
                    owner, event.what.of, span, first, last, f"{says} and to {last:.3g} at the end"
                )
    return None
