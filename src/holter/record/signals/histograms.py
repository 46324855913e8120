"""Histograms: how many elements of a tensor have which magnitude."""

from holter.record.signals._signal import Per, Phase, Signal

LOWEST, EXPONENTS = -40, 64  # bins of powers of two: the first begins at 2**LOWEST
ZERO_BIN, NONFINITE_BIN, BINS = EXPONENTS, EXPONENTS + 1, EXPONENTS + 2

GRAD_HISTOGRAM = Signal(
    "grad.histogram",
    Per.PARAMETER,
    Phase.BACKWARD,
    "share",
    "Shares of the gradient's elements by magnitude: 64 bins of powers of two from 2^-40 to 2^24,"
    " the outer ones with all beyond, then exact zeros, then NaN and infinity; unscaled, before"
    " clipping; every 16th of the steps that are read whole.",
    bins=BINS,
)
WEIGHT_HISTOGRAM = Signal(
    "weight.histogram",
    Per.PARAMETER,
    Phase.UPDATE,
    "share",
    "Shares of the parameter's elements by magnitude after the update, in the same bins.",
    bins=BINS,
)
