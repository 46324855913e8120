import numpy as np
import pytest

from holter.diagnosis.rules.limited_generator import limited_generator
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import INPUT_ABSMAX, LOSS
from synthetic import found, run_of, said

STEPS = 80


def adversaries(sample: float, data: float, models: tuple[str, ...] = ("D", "G")) -> Run:
    """A discriminator that is given data and generated samples in turn."""
    given = np.where(np.arange(STEPS) % 2, data, sample)
    return run_of(
        {
            INPUT_ABSMAX: {"D": given, "G": np.full(STEPS, 3.0)},
            LOSS: {model: np.ones(STEPS) for model in models},
        }
    )


def test_samples_end_at_the_bound_of_a_tanh() -> None:
    (finding,) = found(limited_generator, adversaries(0.9999, 2.2))
    assert finding.confidence is Confidence.LIKELY
    assert "2.2" in finding.summary


@pytest.mark.parametrize(("sample", "data"), [(0.8, 2.2), (1.7, 2.2), (1.0, 1.05), (0.999, 0.9)])
def test_what_reaches_the_data_or_does_not_press_is_clear(sample: float, data: float) -> None:
    (verdict,) = said(limited_generator, adversaries(sample, data))
    assert isinstance(verdict, Clear)


def test_one_model_is_not_examined() -> None:
    (verdict,) = said(limited_generator, adversaries(0.9999, 2.2, models=("",)))
    assert isinstance(verdict, NotExamined)
