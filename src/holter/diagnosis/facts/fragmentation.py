"""GPU memory that the allocator of torch holds and cannot use, and what that costs."""

from dataclasses import dataclass

import numpy as np

from holter.record import Run
from holter.record.signals import INPUT_ELEMENTS, MEMORY_PEAK, MEMORY_RESERVED, MEMORY_RETRIES

_WARM_UP = 0.1  # share of the steps: cuDNN tries algorithms there that need much memory
_LEAST = 8  # readings after that


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """How the allocator of a GPU fared after warm-up."""

    first: int  # steps between which it was read
    last: int
    retries: int  # allocations that failed until the allocator had given its cache back
    onset: int  # step at which the first of them was seen; `first` if there is none
    reserved: float  # bytes at most
    peak: float  # bytes in tensors at most
    sizes: int  # different numbers of elements in inputs of a model, as far as they were read

    @property
    def unused(self) -> float:
        """Share of the reserved memory that was never in a tensor."""
        return max(1.0 - self.peak / self.reserved, 0.0) if self.reserved else 0.0


def fragmentation(run: Run) -> Fragmentation | str:
    """Return how the allocator fared, or why that cannot be said."""
    if any(s not in run or not len(run[s][""]) for s in (MEMORY_RETRIES, *_MEMORY)):
        return "the memory of a GPU was not read"
    counts = run[MEMORY_RETRIES][""]
    after = counts.steps >= int(counts.last * _WARM_UP)
    steps, retries = counts.steps[after], counts.values[after].astype(np.float64)
    if len(steps) < _LEAST:
        return f"{len(steps)} of the {_LEAST} readings needed"
    more = retries > retries[0]
    reserved, peak = (float(run[signal][""].values.max()) for signal in _MEMORY)
    return Fragmentation(
        first=int(steps[0]),
        last=int(steps[-1]),
        retries=int(retries[-1] - retries[0]),
        onset=int(steps[more.argmax()]),
        reserved=reserved,
        peak=peak,
        sizes=_sizes(run),
    )


_MEMORY = (MEMORY_RESERVED, MEMORY_PEAK)


def _sizes(run: Run) -> int:
    """Return the number of different sizes of the inputs, of the model with most of them."""
    models = run[INPUT_ELEMENTS].values() if INPUT_ELEMENTS in run else ()
    return max((len(np.unique(series.values)) for series in models), default=0)
