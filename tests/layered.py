"""Runs of layered models made by hand: losses that fall or do not, readings of every layer."""

from collections.abc import Mapping, Sequence

import numpy as np

from holter.record import Meta, Run, Series
from holter.record.meta import ParameterSummary
from holter.record.signals import LOSS, Signal
from synthetic import run_of, series

STEPS = 200


def falling(steps: int = STEPS, *, start: float = 2.3, end: float = 0.2) -> np.ndarray:
    """A loss that goes well."""
    noise = 0.02 * np.random.default_rng(0).normal(size=steps)
    return end + (start - end) * np.exp(-5 * np.arange(steps) / steps) + noise


def flat(steps: int = STEPS, *, level: float = 2.3) -> np.ndarray:
    """A loss that does not move."""
    return level * (1 + 0.01 * np.random.default_rng(1).normal(size=steps))


def rising(steps: int = STEPS) -> np.ndarray:
    """A loss that runs away."""
    return 2.3 * np.exp(8 * np.arange(steps) / steps)


def broken(steps: int = STEPS) -> np.ndarray:
    """A loss that is not finite at last."""
    return np.where(np.arange(steps) < steps // 2, 2.3, np.nan)


def layers(count: int, *, shape: Sequence[int] = (32, 32), dtype: str = "float32") -> Meta:
    """The meta of a run with so many linear layers."""
    parameters: dict[str, ParameterSummary] = {}
    for number in range(count):
        parameters[f"{number}.weight"] = ParameterSummary(tuple(shape), dtype)
        parameters[f"{number}.bias"] = ParameterSummary((shape[0],), dtype)
    return Meta(parameters=parameters)


def layered(
    loss: np.ndarray,
    readings: Mapping[Signal, Mapping[str, float | Sequence[float] | np.ndarray | Series]],
    meta: Meta | None = None,
) -> Run:
    """A run with this loss; a single number stands for the same reading at every step."""
    made: dict[Signal, dict[str, Series]] = {LOSS: {"": series(loss)}}
    for signal, owners in readings.items():
        made[signal] = {
            owner: each
            if isinstance(each, Series)
            else series(np.full(len(loss), each) if np.isscalar(each) else each)
            for owner, each in owners.items()
        }
    return run_of(made, meta=meta)


def by_layer(values: Sequence[float], kind: str = "weight") -> dict[str, float]:
    """Readings of the weights of layers 0, 1, 2 and so on."""
    return {f"{number}.{kind}": value for number, value in enumerate(values)}
