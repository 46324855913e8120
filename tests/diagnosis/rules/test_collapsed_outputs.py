from dataclasses import replace

import numpy as np

from holter.diagnosis.rules.collapsed_outputs import collapsed_outputs
from holter.record import Run
from holter.record.findings import Clear, NotExamined
from holter.record.meta import ModelSummary
from holter.record.signals import (
    RESPONSE_INPUT_SPREAD,
    RESPONSE_INPUT_UNITS,
    RESPONSE_SIZE,
    RESPONSE_SPREAD,
    RESPONSE_UNITS,
)
from synthetic import found, run_of, said

STEPS = 200
REAL = np.full(STEPS, 0.7)


def run(made: np.ndarray, given: np.ndarray) -> Run:
    """A generator of two numbers, and the spread of what its adversary is given."""
    ones = np.ones(STEPS)
    recorded = run_of(
        {
            RESPONSE_SPREAD: {"generator": made, "critic": ones},
            RESPONSE_SIZE: {"generator": ones, "critic": ones},
            RESPONSE_UNITS: {"generator": 2 * ones, "critic": ones},
            RESPONSE_INPUT_SPREAD: {"generator": ones, "critic": given},
            RESPONSE_INPUT_UNITS: {"generator": 4 * ones, "critic": 2 * ones},
        }
    )
    models = tuple(ModelSummary(name, "Sequential") for name in ("generator", "critic"))
    return replace(recorded, meta=replace(recorded.meta, model=models))


def alternating(made: np.ndarray) -> np.ndarray:
    """An adversary that is given real samples and generated ones by turns."""
    return np.where(np.arange(STEPS) % 2, made, REAL)


def test_samples_that_hardly_vary() -> None:
    made = np.linspace(0.09, 0.05, STEPS)
    (finding,) = found(collapsed_outputs, run(made, alternating(made)))
    assert finding.onset == 0


def test_samples_that_vary() -> None:
    made = np.linspace(0.1, 0.6, STEPS)
    (verdict,) = said(collapsed_outputs, run(made, alternating(made)))
    assert isinstance(verdict, Clear)


def test_a_model_that_is_never_given_the_outputs_is_no_adversary() -> None:
    made = np.linspace(0.09, 0.05, STEPS)  # the means of an encoder, beside sampled latents
    (verdict,) = said(collapsed_outputs, run(made, REAL))
    assert isinstance(verdict, NotExamined)
