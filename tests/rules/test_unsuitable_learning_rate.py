import numpy as np
import pytest

from holter.findings import Clear, Confidence, Finding, NotExamined, Severity, Verdict
from holter.rules.unsuitable_learning_rate import unsuitable_learning_rate
from holter.run import Run
from holter.signals import (
    LR_RANGE_CONFIGURED,
    LR_RANGE_END,
    LR_RANGE_ERROR,
    LR_RANGE_HELD,
    LR_RANGE_MOVED,
    LR_RANGE_RATE,
    LR_RANGE_START,
)
from sweeps import START, falling
from synthetic import run_of, said

# As short trainings end: best from 2e-3 to 4e-3, nothing at 1e-6, above the start from 0.1 on.
ENDS = {1e-6: 2.149, 3e-5: 2.1, 1e-3: 1.4, 2e-3: 1.2, 4e-3: 1.2, 8e-3: 1.4, 0.06: 2.1, 0.2: 4.0}


def run_with(
    peak: float,
    *,
    now: float | None = None,
    given: float | None = None,
    ends: dict[float, float] = ENDS,
    tried: bool = True,
    moved: float = 0.5,
    edge: float = 0.1,
) -> Run:
    sweeps = [falling(edge=edge, seed=seed) for seed in range(3)]
    signals = {
        LR_RANGE_START: {"": START},
        LR_RANGE_CONFIGURED: {
            "peak": [peak],
            "now": [peak if now is None else now],
            "given": [peak if given is None else given],
        },
        LR_RANGE_RATE: {f"sweep {n}": each.rates for n, each in enumerate(sweeps)},
        LR_RANGE_HELD: {f"sweep {n}": each.held for n, each in enumerate(sweeps)},
        LR_RANGE_ERROR: {f"sweep {n}": each.errors for n, each in enumerate(sweeps)},
        LR_RANGE_MOVED: {f"sweep {n}": [moved] for n in range(3)},
    }
    if tried:
        rates = [rate for rate in ends if 1e-3 <= rate <= 8e-3 or rate == peak]
        signals[LR_RANGE_RATE] |= {f"confirm {rate:g}": [rate] * 10 for rate in rates}
        tilt = 0.01 * np.array([-1, 1, -1, 1])  # held batches do not gain alike
        signals[LR_RANGE_END] = {
            f"confirm {rate:g}": START - START.mean() + ends[rate] + tilt for rate in rates
        }
    return run_of(signals)


def verdict(run: Run, **options: float) -> Verdict:
    (only,) = said(unsuitable_learning_rate, run, **options)
    return only


@pytest.mark.parametrize("peak", [1e-3, 2e-3, 4e-3, 8e-3])
def test_a_rate_that_gains_is_clear(peak: float) -> None:
    assert isinstance(verdict(run_with(peak)), Clear)


def test_a_rate_beyond_the_edge() -> None:
    found = verdict(run_with(0.2))
    assert isinstance(found, Finding)
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.LIKELY)
    assert {each.signal for each in found.evidence} == {LR_RANGE_END, LR_RANGE_HELD}
    assert "0.2" in found.summary
    assert "0.0028" in found.fix


def test_a_rate_with_which_the_loss_is_not_finite() -> None:
    found = verdict(run_with(0.2, ends=ENDS | {0.2: np.inf}))
    assert isinstance(found, Finding)
    assert found.confidence is Confidence.LIKELY


def test_a_schedule_that_warms_up_may_stand_it() -> None:
    found = verdict(run_with(0.2, now=1e-4))
    assert isinstance(found, Finding)
    assert found.confidence is Confidence.HINT


def test_a_training_that_fails_where_sweeps_do_not_is_a_hint() -> None:
    found = verdict(run_with(0.2, edge=5.0))
    assert isinstance(found, Finding)
    assert found.confidence is Confidence.HINT


def test_a_high_rate_that_gains_little_may_still_decay() -> None:
    found = verdict(run_with(0.06))
    assert isinstance(found, Finding)
    assert (found.severity, found.confidence) == (Severity.INFO, Confidence.HINT)


def test_a_rate_that_moves_nothing() -> None:
    found = verdict(run_with(1e-6))
    assert isinstance(found, Finding)
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.LIKELY)


def test_a_low_rate_that_gains_is_no_more_than_told() -> None:
    found = verdict(run_with(3e-5))
    assert isinstance(found, Finding)
    assert (found.severity, found.confidence) == (Severity.INFO, Confidence.HINT)
    assert isinstance(verdict(run_with(3e-5), times=100.0), Clear)


def test_a_warm_up_by_hand_is_not_low() -> None:
    assert isinstance(verdict(run_with(1e-6, given=3e-3)), Clear)


def test_sweeps_alone_give_a_hint() -> None:
    found = verdict(run_with(0.5, tried=False))
    assert isinstance(found, Finding)
    assert found.confidence is Confidence.HINT
    assert isinstance(verdict(run_with(3e-3, tried=False)), Clear)


def test_a_test_that_says_nothing() -> None:
    assert isinstance(verdict(run_with(0.2, moved=0.0)), NotExamined)
