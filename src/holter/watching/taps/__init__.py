"""Reversible taps on torch's entry points: one file for each part of torch that a script calls.

Each file says what it tells (a `Listener` protocol) and taps what it needs. The methods of a
listener must not raise: they run inside a training. `Tap` is the one way to replace an attribute.
"""

from holter.watching.tap import Interest, Tap
from holter.watching.taps.losses import LOSS_FUNCTIONS, TappedLoss

__all__ = ["LOSS_FUNCTIONS", "Interest", "Tap", "TappedLoss"]
