"""Statistics of many tensors at once, left on their device."""

from holter.watching.stats.packing import Packed
from holter.watching.stats.statistics import Statistics
from holter.watching.stats.summary import Stat

__all__ = ["Packed", "Stat", "Statistics"]
