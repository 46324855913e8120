"""Runs with validation passes, made by hand: a cross-entropy over ten classes."""

from collections.abc import Mapping, Sequence

import numpy as np

from holter.record import Event, Run, Series
from holter.record.events import Occurrence
from holter.record.signals import (
    ACCURACY,
    LOSS,
    LOSS_ROOT_SHARE,
    OUTPUT_SIZE,
    TARGET_ENTROPY,
    TARGET_LARGEST_CLASS_FRACTION,
    VAL_ACCURACY,
    VAL_LOSS,
    Signal,
)
from synthetic import run_of, series

FUNCTION = "cross_entropy"
ENTROPY = 2.3
CHANCE = 0.1
STEPS = 20  # of training before each pass


def validated(
    training: np.ndarray,
    validation: np.ndarray,
    *,
    val_accuracy: np.ndarray | None = None,
    accuracy: np.ndarray | None = None,
    noise: float = 0.05,
    seed: int = 0,
    more: Mapping[Signal, Mapping[str, Series]] | None = None,
    events: Sequence[Event[Occurrence]] = (),
) -> Run:
    """A run whose training loss has a level before each pass, with noise from step to step."""
    rng = np.random.default_rng(seed)
    passes = len(validation)
    loss = np.repeat(training, STEPS) * (1 + noise * rng.normal(size=passes * STEPS))
    after = [STEPS * (each + 1) - 1 for each in range(passes)]
    steps = len(loss)
    signals: dict[Signal, dict[str, object]] = {
        LOSS: {"": loss},
        LOSS_ROOT_SHARE: {"": np.ones(steps)},
        OUTPUT_SIZE: {FUNCTION: np.ones(steps)},
        TARGET_ENTROPY: {FUNCTION: np.full(steps, ENTROPY)},
        TARGET_LARGEST_CLASS_FRACTION: {FUNCTION: np.full(steps, CHANCE)},
        VAL_LOSS: {FUNCTION: series(validation, after)},
    }
    if val_accuracy is not None:
        signals[VAL_ACCURACY] = {FUNCTION: series(val_accuracy, after)}
    if accuracy is not None:
        signals[ACCURACY] = {FUNCTION: np.repeat(accuracy, STEPS)}
    return run_of({**signals, **(more or {})}, events=events)  # type: ignore[arg-type]
