"""Other random numbers for an unmodified script: the seeds that it sets, shifted."""

import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from numbers import Integral
from typing import Any

import numpy as np

_APART = 1_000_003  # between the seeds of two shifts
_LARGEST = 2**31


@contextmanager
def shifted_seeds(shift: int) -> Iterator[Callable[[], None]]:
    """Shift the seeds that the script sets; yields what to call when torch has been imported.

    A shift of 0 leaves them as they are. Generators that the script does not seed get the shift as
    their seed. What another process does, and a seed given to a `torch.Generator`, is not shifted.
    """
    random.seed(shift)
    np.random.seed(shift)
    with ExitStack() as stack:
        for module, name in ((random, "seed"), (np.random, "seed"), (np.random, "default_rng")):
            stack.enter_context(_shifted(module, name, shift))

        def after_torch() -> None:
            torch: Any = sys.modules["torch"]
            torch.random.manual_seed(shift)
            stack.enter_context(_shifted(torch, "manual_seed", shift))
            stack.enter_context(_shifted(torch.random, "manual_seed", shift))
            # After `torch.manual_seed` these would set the script's own seed again.
            stack.enter_context(_shifted(torch.cuda, "manual_seed", shift))
            stack.enter_context(_shifted(torch.cuda, "manual_seed_all", shift))

        yield after_torch


@contextmanager
def _shifted(module: Any, name: str, shift: int) -> Iterator[None]:
    """Shift the number that a function of a module is given first."""
    original, process = getattr(module, name), os.getpid()

    def moved(given: Any) -> Any:
        return (int(given) + shift * _APART) % _LARGEST if isinstance(given, Integral) else given

    def seed(*args: Any, **kwargs: Any) -> Any:
        if os.getpid() == process:
            args = (*map(moved, args[:1]), *args[1:])
            kwargs = {name: moved(given) for name, given in kwargs.items()}
        return original(*args, **kwargs)

    if shift:
        setattr(module, name, seed)
    try:
        yield
    finally:
        if shift and getattr(module, name) is seed:
            setattr(module, name, original)
