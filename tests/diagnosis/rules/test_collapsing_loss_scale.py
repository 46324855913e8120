import numpy as np
import pytest

from holter.diagnosis.rules.collapsing_loss_scale import collapsing_loss_scale
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import AMP_SCALE, AMP_SKIPPED
from synthetic import found, run_of, said

STEPS = 400


def run_with(skips: list[int], *, start: float = 65536.0, growth: int = 2000) -> Run:
    """What a GradScaler does when these steps overflow."""
    scale, calm, scales = start, 0, []
    for step in range(STEPS):
        scales.append(scale)
        calm += 1
        if step in skips:
            scale, calm = scale / 2, 0
        elif calm == growth:
            scale, calm = scale * 2, 0
    skipped = np.isin(np.arange(STEPS), skips).astype(float)
    return run_of({AMP_SCALE: {"": scales}, AMP_SKIPPED: {"": skipped}})


def test_a_scale_that_keeps_falling() -> None:
    (finding,) = found(collapsing_loss_scale, run_with([100, 130, 160, 190, 220, 250]))
    assert finding.confidence is Confidence.LIKELY
    assert finding.onset == 100


def test_under_one() -> None:
    (finding,) = found(collapsing_loss_scale, run_with(list(range(20)), start=1024.0))
    assert "do not fit" in finding.summary


def test_every_step_overflows() -> None:
    assert found(collapsing_loss_scale, run_with(list(range(STEPS))))


def test_a_longer_search_is_normal() -> None:
    skips = [100, 130, 160, 190, 220, 250]
    assert not found(collapsing_loss_scale, run_with(skips), settled_after=120)


@pytest.mark.parametrize(
    "run",
    [
        run_with([]),
        run_with(list(range(12)), start=2.0**24),  # searches for its scale
        run_with([100, 150, 200, 250]),  # four halvings
        run_with(list(range(52, STEPS, 51)), growth=50),  # one skip after each growth
    ],
)
def test_clear(run: Run) -> None:
    (verdict,) = said(collapsing_loss_scale, run)
    assert isinstance(verdict, Clear)


def test_too_short_and_not_finite() -> None:
    short = run_of({AMP_SCALE: {"": [1024.0] * 39}, AMP_SKIPPED: {"": [0] * 39}})
    (verdict,) = said(collapsing_loss_scale, short)
    assert isinstance(verdict, NotExamined)
    odd = run_of({AMP_SCALE: {"": [np.nan] * 100}, AMP_SKIPPED: {"": [0] * 100}})
    (verdict,) = said(collapsing_loss_scale, odd)
    assert isinstance(verdict, NotExamined)
