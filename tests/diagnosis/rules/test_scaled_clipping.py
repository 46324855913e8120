import pytest

from holter.diagnosis.rules.scaled_clipping import scaled_clipping
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import AMP_SCALE, CLIP_LIMIT, CLIP_SCALED
from synthetic import found, run_of, said


def run_with(scaled: list[int], scale: float = 65536.0, limit: float = 1.0) -> Run:
    count = len(scaled)
    return run_of(
        {
            CLIP_SCALED: {"": scaled},
            AMP_SCALE: {"": [scale] * count},
            CLIP_LIMIT: {"": [limit] * count},
        }
    )


def test_clipped_with_the_scale_on() -> None:
    (finding,) = found(scaled_clipping, run_with([1] * 20))
    assert finding.confidence is Confidence.CERTAIN
    assert "1.5e-05" in finding.summary


@pytest.mark.parametrize(
    "run",
    [
        run_with([0] * 20),
        run_with([1, 0] * 20),
        run_with([1] * 20, scale=1.0),
    ],
)
def test_clear(run: Run) -> None:
    (verdict,) = said(scaled_clipping, run)
    assert isinstance(verdict, Clear)


def test_a_limit_that_the_script_multiplies_by_the_scale() -> None:
    (verdict,) = said(scaled_clipping, run_with([1] * 20, limit=65536.0))
    assert isinstance(verdict, Normal)
    assert verdict.exception == "scaled-limit"


def test_too_short() -> None:
    (verdict,) = said(scaled_clipping, run_with([1] * 4))
    assert isinstance(verdict, NotExamined)
