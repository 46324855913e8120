"""Statistics of many tensors at once, left on their device."""

from holter.stats.packing import Packed
from holter.stats.statistics import Statistics
from holter.stats.summary import Stat

__all__ = ["Packed", "Stat", "Statistics"]
