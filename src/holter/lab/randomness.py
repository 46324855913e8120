"""The state of all random numbers at one moment."""

import random
import sys
from collections.abc import Sequence
from typing import Any

import torch

Randomness = dict[str, Any]


def drawn(generators: Sequence[torch.Generator] = ()) -> Randomness:
    """Where all generators are: those of the libraries, and these."""
    state: Randomness = {
        "python": random.getstate(),
        "torch": torch.get_rng_state(),
        "generators": [each.get_state() for each in generators],
    }
    cuda: Any = torch.cuda  # without types
    if cuda.is_available() and cuda.is_initialized():
        state["cuda"] = cuda.get_rng_state_all()
    if "numpy" in sys.modules:
        state["numpy"] = sys.modules["numpy"].random.get_state()
    return state


def draw_from(state: Randomness, generators: Sequence[torch.Generator] = ()) -> None:
    """Let all generators go on from there."""
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])
    if "numpy" in state:
        sys.modules["numpy"].random.set_state(state["numpy"])
    for generator, was in zip(generators, state["generators"], strict=True):
        generator.set_state(was)
