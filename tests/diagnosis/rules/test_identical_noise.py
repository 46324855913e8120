import numpy as np
import pytest

from holter.diagnosis.rules.identical_noise import identical_noise
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import (
    INPUT_ELEMENTS,
    INPUT_FINGERPRINT,
    INPUT_MEAN,
    INPUT_STD,
    LOSS,
    PAIRING_NOISE_ALIKE,
    PAIRING_NOISE_WHITE,
    Signal,
)
from synthetic import found, run_of, said

STEPS = 40


def adversaries(*, mean: float = 0.02, std: float = 1.01, in_turn: bool = True) -> Run:
    """A generator that is always given the same batch, and a discriminator that is not."""
    changing = np.random.default_rng(0).normal(size=STEPS)
    return run_of(
        {
            INPUT_FINGERPRINT: {"G": np.full(STEPS, 4.9), "D": changing},
            INPUT_MEAN: {"G": np.full(STEPS, mean)},
            INPUT_STD: {"G": np.full(STEPS, std)},
            INPUT_ELEMENTS: {"G": np.full(STEPS, 384.0)},
            LOSS: {each: np.ones(STEPS) for each in (("G", "D") if in_turn else ("",))},
        }
    )


@pytest.mark.parametrize(("mean", "std"), [(0.02, 1.01), (0.51, 0.285), (-0.02, 0.58)])
def test_noise_that_is_drawn_once(mean: float, std: float) -> None:
    (finding,) = found(identical_noise, adversaries(mean=mean, std=std))
    assert finding.confidence is Confidence.LIKELY
    assert finding.evidence[0].owner == "G"


@pytest.mark.parametrize(
    "run",
    [
        adversaries(mean=3.0, std=2.0),  # no random numbers
        adversaries(mean=0.0, std=1.0),  # data that were standardised
        adversaries(in_turn=False),  # an encoder and a decoder that are trained together
    ],
)
def test_the_same_data_at_every_step_are_no_noise(run: Run) -> None:
    (verdict,) = said(identical_noise, run)
    assert isinstance(verdict, Clear)


def denoiser(alike: float, smooth: float, steps: int = STEPS) -> Run:
    signals: dict[Signal, dict[str, object]] = {
        INPUT_FINGERPRINT: {"Net": np.random.default_rng(0).normal(size=steps)},
        PAIRING_NOISE_ALIKE: {"": [alike]},
        PAIRING_NOISE_WHITE: {"": [smooth]},
    }
    return run_of(signals)


def test_noise_that_is_the_same_in_all_samples() -> None:
    (finding,) = found(identical_noise, denoiser(0.97, 0.02))
    assert "0.97" in finding.summary


@pytest.mark.parametrize(("alike", "smooth"), [(0.05, 0.02), (0.97, 0.8), (0.97, -0.5)])
def test_other_differences_are_clear(alike: float, smooth: float) -> None:
    (verdict,) = said(identical_noise, denoiser(alike, smooth))
    assert isinstance(verdict, Clear)


def test_too_few_steps() -> None:
    (verdict,) = said(identical_noise, denoiser(0.0, 0.0, steps=5))
    assert isinstance(verdict, NotExamined)
