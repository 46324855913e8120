import numpy as np
import pytest

from holter.diagnosis.rules.growing_residuals import growing_residuals
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import NORMALISATION_INPUT_RMS
from layered import STEPS, falling, flat, layered
from synthetic import found, run_of, said

TIME = np.linspace(0, 1, STEPS)


def given(loss: np.ndarray, deep: np.ndarray, first: np.ndarray | float = 1.0) -> Run:
    norms = {"0.norm": first, "1.norm": 1.2, "2.norm": 1.5, "norm": deep}
    return layered(loss, {NORMALISATION_INPUT_RMS: norms})


def growing(times: float) -> np.ndarray:
    return 2 * np.exp(np.log(times) * TIME)


def test_likely_where_the_loss_is_bad() -> None:
    (finding,) = found(growing_residuals, given(flat(), growing(100)))
    assert finding.confidence is Confidence.LIKELY
    assert "still growing" in finding.summary
    assert finding.evidence[0].owner == "norm"
    assert 0 < finding.onset < STEPS


def test_some_growth_is_harmless_where_the_loss_is_fine() -> None:
    (note,) = said(growing_residuals, given(falling(), growing(60)))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


def test_a_hint_where_the_loss_cannot_be_judged() -> None:
    norms = {"0.norm": np.ones(STEPS), "1.norm": np.ones(STEPS), "2.norm": np.ones(STEPS)}
    run = run_of({NORMALISATION_INPUT_RMS: {**norms, "norm": growing(60)}})
    (finding,) = found(growing_residuals, run)
    assert finding.confidence is Confidence.HINT


def test_a_hint_where_the_loss_is_fine() -> None:
    (finding,) = found(growing_residuals, given(falling(), growing(1000)))
    assert finding.confidence is Confidence.HINT


def test_at_rest_far_away_with_a_bad_loss() -> None:
    rest = 2 * np.minimum(np.exp(60 * TIME), 1e6)
    assert found(growing_residuals, given(flat(), rest))
    assert not found(growing_residuals, given(flat(), rest), far=1e9)
    assert not found(growing_residuals, given(falling(), rest))


@pytest.mark.parametrize(
    "run",
    [
        given(falling(), np.full(STEPS, 2.0)),
        given(flat(), growing(15)),
        given(flat(), growing(100), growing(100)),  # the embedding grows, not the depth
        given(flat(), np.full(STEPS, 2000.0)),
    ],
)
def test_silent(run: Run) -> None:
    (verdict,) = said(growing_residuals, run)
    assert isinstance(verdict, Clear)


def test_norms_that_are_never_called_do_not_count() -> None:
    assert found(
        growing_residuals,
        layered(
            flat(),
            {
                NORMALISATION_INPUT_RMS: {
                    "unused": np.nan,
                    "0.norm": 1.0,
                    "1.norm": 1.2,
                    "2.norm": 1.5,
                    "norm": growing(100),
                }
            },
            {},
        ),
    )


@pytest.mark.parametrize(
    "run",
    [
        given(flat(19), growing(100)[:19]),
        given(flat(), np.where(TIME < 0.5, 2, np.nan)),
        run_of({NORMALISATION_INPUT_RMS: {"0": [1.0] * 50, "1": [1.0] * 50, "2": [9.0] * 50}}),
    ],
)
def test_not_examined(run: Run) -> None:
    (verdict,) = said(growing_residuals, run)
    assert isinstance(verdict, NotExamined)
