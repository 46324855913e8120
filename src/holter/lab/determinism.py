"""Determinism: one call that makes a training repeat itself, and states what it set."""

import os
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from holter.lab.randomness import RandomState, has_cuda

_CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
_WORKSPACE = ":4096:8"  # eight buffers of 4 MiB: the smaller of the two that are deterministic
_LARGEST = 2**32 - 1  # seed that NumPy takes


class Determinism:
    """What `holter.deterministic` set, and helpers for data loaders.

    As a context manager, or by `restore()`, it undoes all of it: settings, environment and the
    states of the random number generators.
    """

    def __init__(self, seed: int, *, warn_only: bool) -> None:
        self.seed = seed
        self._random, self._variable = RandomState.now(), os.environ.get(_CUBLAS)
        self._before = _Settings.now()
        self.notes = tuple(_notes(self._variable))
        if self._variable is None:
            os.environ[_CUBLAS] = _WORKSPACE
        _Settings(True, warn_only, True, False).apply()
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)  # of all devices
        self.settings = {
            "random.seed": seed,
            "numpy.random.seed": seed,
            "torch.manual_seed": seed,
            "torch.use_deterministic_algorithms": "warn only" if warn_only else True,
            "torch.backends.cudnn.deterministic": True,
            "torch.backends.cudnn.benchmark": False,
            _CUBLAS: os.environ[_CUBLAS],
        }

    def generator(self) -> torch.Generator:
        """Return a new generator with the seed: pass it to a data loader or `random_split`."""
        return torch.Generator().manual_seed(self.seed)

    @property
    def loader_options(self) -> dict[str, Any]:
        """Arguments that make a loader repeat itself: `DataLoader(..., **fixed.loader_options)`."""
        worker_init_fn: Callable[[int], None] = seed_worker
        return {"generator": self.generator(), "worker_init_fn": worker_init_fn}

    def restore(self) -> None:
        """Undo everything that was set; safe to call twice."""
        self._before.apply()
        if self._variable is None:
            os.environ.pop(_CUBLAS, None)
        self._random.restore()

    def __enter__(self) -> "Determinism":
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def __str__(self) -> str:
        lines = [f"{name} = {value}" for name, value in self.settings.items()]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def deterministic(seed: int = 0, *, warn_only: bool = False) -> Determinism:
    """Seed all random number generators and allow only deterministic algorithms.

    Call it before the model and the loaders are created, and before the first CUDA operation. An
    operation without a deterministic implementation raises RuntimeError, or with `warn_only` warns.
    `print(holter.deterministic(0))` shows what was set; `holter try determinism SCRIPT` measures
    what it costs.
    """
    if not 0 <= seed <= _LARGEST:
        raise ValueError(f"seed is {seed}: it must be from 0 to {_LARGEST}")
    return Determinism(seed, warn_only=warn_only)


def seed_worker(worker: int) -> None:  # noqa: ARG001  (the signature of `worker_init_fn`)
    """Seed Python and NumPy in a loader's worker from the seed that torch gave it."""
    seed = torch.initial_seed() % (_LARGEST + 1)
    random.seed(seed)
    np.random.seed(seed)


@contextmanager
def deterministic_algorithms(*, warn_only: bool = False) -> Iterator[None]:
    """Allow only deterministic algorithms inside; random numbers stay as they are."""
    before = _Settings.now()
    _Settings(True, warn_only, True, False).apply()
    try:
        with warnings.catch_warnings():
            if warn_only:
                warnings.filterwarnings("ignore", message=".*deterministic.*")
            yield
    finally:
        before.apply()


class _Settings:
    """The settings of torch that choose between algorithms."""

    def __init__(self, only: bool, warn_only: bool, cudnn: bool, benchmark: bool) -> None:
        self._values = only, warn_only, cudnn, benchmark

    @classmethod
    def now(cls) -> "_Settings":
        return cls(
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.backends.cudnn.deterministic,
            torch.backends.cudnn.benchmark,
        )

    def apply(self) -> None:
        only, warn_only, cudnn, benchmark = self._values
        torch.use_deterministic_algorithms(only, warn_only=warn_only)
        torch.backends.cudnn.deterministic = cudnn
        torch.backends.cudnn.benchmark = benchmark


def _notes(variable: str | None) -> Iterator[str]:
    """Yield what cannot be set any more, a sentence each."""
    if has_cuda() and variable is None:
        yield (
            f"CUDA was initialised before: {_CUBLAS} takes effect in a new process only; call"
            f" holter.deterministic first, or start the script with {_CUBLAS}={_WORKSPACE}"
        )
    if os.environ.get("PYTHONHASHSEED", "random") == "random":
        yield (
            "PYTHONHASHSEED is not set: the order of a set of strings differs between processes;"
            " start the script with PYTHONHASHSEED=0 if the training depends on it"
        )
