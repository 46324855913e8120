import pytest

from holter.diagnosis.rules.outweighed_term import outweighed_term
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import (
    LOSS,
    LOSS_MEAN,
    LOSS_TERM_GRADIENT,
    TARGET_ENTROPY,
    TARGET_STD,
)
from synthetic import found, run_of, said


def two_terms(*, share: float, loss: float, steps: int = 200) -> Run:
    """A cross-entropy with a share of the gradient, whose labels have an entropy of 1.1."""
    return run_of(
        {
            LOSS: {"": [1.0] * steps},
            LOSS_TERM_GRADIENT: {
                "cross_entropy": [share] * 20,
                "mse_loss": [1 - share] * 20,
            },
            LOSS_MEAN: {"cross_entropy": [loss] * 20, "mse_loss": [0.1] * 20},
            TARGET_ENTROPY: {"cross_entropy": [1.1] * 20},
            TARGET_STD: {"mse_loss": [1.0] * 20},
        }
    )


def test_a_term_with_little_of_the_gradient_that_stays_at_chance() -> None:
    (finding,) = found(outweighed_term, two_terms(share=1e-3, loss=1.1))
    assert finding.confidence is Confidence.LIKELY
    assert "cross_entropy has 0.1 %" in finding.summary


@pytest.mark.parametrize(
    ("share", "loss"), [(1e-3, 0.6), (0.2, 1.1)], ids=["it is learned", "it counts"]
)
def test_clear(share: float, loss: float) -> None:
    (clear,) = said(outweighed_term, two_terms(share=share, loss=loss))
    assert isinstance(clear, Clear)


def test_a_short_run_is_not_examined() -> None:
    (verdict,) = said(outweighed_term, two_terms(share=1e-3, loss=1.1, steps=30))
    assert isinstance(verdict, NotExamined)


def test_a_term_that_is_switched_off_is_not_outweighed() -> None:
    (verdict,) = said(outweighed_term, two_terms(share=0.0, loss=1.1))
    assert isinstance(verdict, Normal)
    assert verdict.exception == "switched-off"


def test_terms_of_one_function_are_not_told_apart() -> None:
    run = run_of(
        {
            LOSS: {"": [1.0] * 200},
            LOSS_TERM_GRADIENT: {"cross_entropy": [1e-3] * 20, "cross_entropy 2": [0.999] * 20},
            LOSS_MEAN: {"cross_entropy": [2.4] * 20},
            TARGET_ENTROPY: {"cross_entropy": [1.1] * 20},
        }
    )
    (verdict,) = said(outweighed_term, run)
    assert isinstance(verdict, Clear)
