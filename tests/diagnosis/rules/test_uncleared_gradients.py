import pytest

from holter.diagnosis.rules.uncleared_gradients import uncleared_gradients
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import GRAD_CARRIED_FRACTION, GRAD_TOTAL_NORM
from synthetic import found, run_of, said, series


@pytest.mark.parametrize("first", [[0.0], []])
def test_never_cleared(first: list[float]) -> None:
    carried = series(first + [1.0] * 5, range(1 - len(first), 6))
    (finding,) = found(uncleared_gradients, run_of({GRAD_CARRIED_FRACTION: {"": carried}}))
    assert finding.onset == 1
    assert finding.confidence is Confidence.CERTAIN


@pytest.mark.parametrize("batches", [4, 15])
def test_cleared_once_per_epoch(batches: int) -> None:
    carried = ([0.0] + [1.0] * (batches - 1)) * 8
    (finding,) = found(uncleared_gradients, run_of({GRAD_CARRIED_FRACTION: {"": carried}}))
    assert finding.confidence is Confidence.CERTAIN
    assert "most steps" in finding.summary


def test_cleared_at_first_and_later_no_more() -> None:
    run = run_of({GRAD_CARRIED_FRACTION: {"": [0.0] * 200 + [1.0] * 50}})
    (finding,) = found(uncleared_gradients, run)
    assert finding.onset == 200


def test_a_part_that_is_never_cleared_is_likely() -> None:
    run = run_of({GRAD_CARRIED_FRACTION: {"generator": [0.0] + [0.5] * 20}})
    (finding,) = found(uncleared_gradients, run)
    assert finding.confidence is Confidence.LIKELY
    assert "50 %" in finding.summary
    assert "generator" in finding.summary


def test_mentions_how_the_norm_grew() -> None:
    run = run_of(
        {
            GRAD_CARRIED_FRACTION: {"": [0.0] + [1.0] * 19},
            GRAD_TOTAL_NORM: {"": [float(step) for step in range(20)]},
        }
    )
    (finding,) = found(uncleared_gradients, run)
    assert [each.signal for each in finding.evidence] == [GRAD_CARRIED_FRACTION, GRAD_TOTAL_NORM]
    assert "17" in finding.evidence[1].says


@pytest.mark.parametrize(
    "carried",
    [
        [0.0] * 60,
        [0.0, 1.0, 0.0, 0.0] * 20,  # now and then
        [1.0] * 100 + [0.0] * 50,  # mended
        [0.0] * 100 + [1.0] * 4,
        [0.0, 0.5] * 50,
        [0.0, 1.0] * 50,
    ],
)
def test_silent_where_gradients_are_cleared(carried: list[float]) -> None:
    (verdict,) = said(uncleared_gradients, run_of({GRAD_CARRIED_FRACTION: {"": carried}}))
    assert isinstance(verdict, Clear)


def test_too_few_steps() -> None:
    (verdict,) = said(uncleared_gradients, run_of({GRAD_CARRIED_FRACTION: {"": [0.0] + [1.0] * 4}}))
    assert isinstance(verdict, NotExamined)
