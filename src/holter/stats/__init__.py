"""Statistics of many tensors at once, left on their device: the one door to all measuring."""

from holter.stats.packing import Packed
from holter.stats.summary import Stat, difference, norms, summarise

__all__ = ["Packed", "Stat", "difference", "norms", "summarise"]
