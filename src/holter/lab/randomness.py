"""Random numbers: the state of every generator that a training draws from, read and set again."""

import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from holter.lab.setup import Setup


@dataclass(frozen=True, slots=True)
class RandomState:
    """The state of torch's generators on host and GPUs, of Python's, NumPy's and the loaders'."""

    host: Tensor
    cuda: Mapping[int, Tensor] = field(default_factory=dict)  # by device
    python: Any = None
    numpy: Any = None
    generators: tuple[Tensor, ...] = ()

    @classmethod
    def now(cls, generators: Sequence[torch.Generator] = ()) -> "RandomState":
        """Read the state of all generators, and of these."""
        return cls(
            torch.get_rng_state(),
            dict(enumerate(torch.cuda.get_rng_state_all())) if has_cuda() else {},
            random.getstate(),
            sys.modules["numpy"].random.get_state() if "numpy" in sys.modules else None,
            tuple(generator.get_state() for generator in generators),
        )

    @classmethod
    def of_device(cls, host: Tensor, cuda: Tensor | None) -> "RandomState":
        """Describe the generators of torch on the host and on the current GPU alone."""
        return cls(host, {torch.cuda.current_device(): cuda} if cuda is not None else {})

    def restore(self, generators: Sequence[torch.Generator] = ()) -> None:
        """Set the generators that were read to this state; leave others alone."""
        torch.set_rng_state(self.host)
        if torch.cuda.is_available():
            for device, state in self.cuda.items():
                torch.cuda.set_rng_state(state, device)
        if self.python is not None:
            random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)
        for generator, state in zip(generators, self.generators, strict=True):
            generator.set_state(state)

    @property
    def values(self) -> tuple[Any, ...]:
        """All states, for comparison."""
        return self.host, dict(self.cuda), self.python, self.numpy, self.generators


@dataclass(frozen=True, slots=True)
class StepRandom:
    """The random state before each statement of a step; none where the step was seen afterwards."""

    states: Mapping[int, RandomState] = field(default_factory=dict)

    def restore(self, place: int) -> None:
        """Set the generators as they were before a statement, if that is known."""
        if place in self.states:
            self.states[place].restore()

    def begin(self) -> None:
        """Set the generators as they were before the first statement."""
        if self.states:
            self.restore(min(self.states))


def generators_of(setup: Setup) -> list[torch.Generator]:
    """Return the generators that loaders and their samplers own."""
    owners = [each for loader in setup.loaders.values() for each in (loader, loader.sampler)]
    held = [vars(owner).get("generator") for owner in owners if hasattr(owner, "__dict__")]
    return list({id(each): each for each in held if isinstance(each, torch.Generator)}.values())


@contextmanager
def same_randomness(setup: Setup) -> Iterator[None]:
    """Draw random numbers inside that are drawn again afterwards."""
    generators = generators_of(setup)
    before = RandomState.now(generators)
    try:
        yield
    finally:
        before.restore(generators)


def seed_all(setup: Setup, number: int) -> None:
    """Seed every generator, those of loaders too."""
    seed = number % 2**31
    torch.default_generator.manual_seed(seed)
    if has_cuda():
        torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    for generator in generators_of(setup):
        generator.manual_seed(seed)


def has_cuda() -> bool:
    """Whether CUDA is in use in this process."""
    cuda: Any = torch.cuda  # without types
    return bool(cuda.is_available() and cuda.is_initialized())
