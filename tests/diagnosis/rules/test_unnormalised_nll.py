import numpy as np
import pytest

from holter.diagnosis.rules.unnormalised_nll import unnormalised_nll
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import (
    LOSS,
    OUTPUT_LOG_NORMALISER,
    OUTPUT_LOG_PROBABILITY_FRACTION,
    OUTPUT_PROBABILITY_FRACTION,
    OUTPUT_UNITS,
    TARGET_COUNT,
)
from synthetic import found, run_of, said


def given(
    logs: list[float],
    normaliser: list[float],
    simplex: float = 0.0,
    losses: list[float] | None = None,
) -> Run:
    return run_of(
        {
            LOSS: {"": losses or [0.5] * len(logs)},
            OUTPUT_UNITS: {"nll_loss": [4.0] * len(logs)},
            OUTPUT_LOG_PROBABILITY_FRACTION: {"nll_loss": logs},
            OUTPUT_LOG_NORMALISER: {"nll_loss": normaliser},
            OUTPUT_PROBABILITY_FRACTION: {"nll_loss": [simplex] * len(logs)},
        }
    )


def test_probabilities_are_certain() -> None:
    (finding,) = found(unnormalised_nll, given([0.0] * 5, [1.64] * 5, simplex=1.0))
    assert finding.confidence is Confidence.CERTAIN
    assert "probabilities instead" in finding.summary
    assert "1.64" in finding.summary


@pytest.mark.parametrize("last", [-60.0, np.nan])
def test_logits_are_likely_though_a_few_are_normalised_by_chance(last: float) -> None:
    losses = [*np.linspace(0.1, -60, 20), *[last] * 7]
    run = given([0.0, 0.02, 0.1] * 9, [1.6] * 27, losses=losses)
    (finding,) = found(unnormalised_nll, run)
    assert finding.confidence is Confidence.LIKELY
    assert "logits" in finding.summary


@pytest.mark.parametrize(("samples", "normaliser"), [(64, -2.75), (2, 0.69)])
def test_a_softmax_over_the_samples(samples: float, normaliser: float) -> None:
    later = [normaliser - 0.3] * 26
    signals = {
        OUTPUT_LOG_PROBABILITY_FRACTION: {"nll_loss": [0.0] * 27},
        OUTPUT_LOG_NORMALISER: {"nll_loss": [normaliser, *later]},
        OUTPUT_UNITS: {"nll_loss": [4.0] * 27},
        TARGET_COUNT: {"nll_loss": [samples] * 27},
    }
    (finding,) = found(unnormalised_nll, run_of(signals))
    assert finding.confidence is Confidence.LIKELY
    assert "samples" in finding.summary


def test_a_loss_that_does_not_fall_without_end_is_a_hint() -> None:
    losses = [-0.4, 0.3, 0.1] * 9  # log-probabilities times rewards
    (finding,) = found(unnormalised_nll, given([0.0] * 27, [4.0] * 27, losses=losses))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(
    ("share", "normaliser"),
    [
        (1.0, 0.0),
        (0.0, 0.05),  # a small number inside the logarithm
    ],
)
def test_silent(share: float, normaliser: float) -> None:
    (verdict,) = said(unnormalised_nll, given([share] * 50, [normaliser] * 50))
    assert isinstance(verdict, Clear)


def test_one_of_two_heads_is_a_hint() -> None:
    (finding,) = found(unnormalised_nll, given([0.5] * 50, [0.8] * 50))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(("normaliser", "applies"), [(-300.0, True), (0.3, False)])
def test_densities_of_the_input(normaliser: float, applies: bool) -> None:
    (verdict,) = said(unnormalised_nll, given([0.0] * 50, [normaliser] * 50))
    assert isinstance(verdict, Normal if applies else Finding)
    assert not isinstance(verdict, Normal) or verdict.exception == "densities"


def test_nonfinite_predictions_are_left_out() -> None:
    run = given([1.0] * 10 + [0.0] * 90, [0.0] * 10 + [np.nan] * 90)
    (verdict,) = said(unnormalised_nll, run)
    assert isinstance(verdict, Clear)
    assert not said(unnormalised_nll, given([0.0] * 9, [np.nan] * 9))


def test_too_short() -> None:
    (verdict,) = said(unnormalised_nll, given([0.0] * 2, [1.6] * 2))
    assert isinstance(verdict, NotExamined)
