import pytest

from holter.diagnosis.rules.discarded_gradients import discarded_gradients
from holter.record import Run
from holter.record.findings import Clear, Confidence
from holter.record.signals import DATA_BATCHES, GRAD_DISCARDED
from synthetic import found, run_of, said


def trained(discarded: float, batches: float, steps: int = 10) -> Run:
    return run_of(
        {
            GRAD_DISCARDED: {"Adam": [discarded] * steps},
            DATA_BATCHES: {"loader": [batches] * steps},
        }
    )


def test_reports_one_step_an_epoch() -> None:
    (finding,) = found(discarded_gradients, trained(29, 30))
    assert finding.confidence is Confidence.CERTAIN
    assert "97 %" in finding.summary


@pytest.mark.parametrize(
    ("discarded", "batches"),
    [(0, 1), (0, 8), (7, 1000), (7, 1), (1, 1)],
    ids=["plain", "accumulated", "rare", "attacks", "two passes over each batch"],
)
def test_is_clear_of_what_is_used(discarded: float, batches: float) -> None:
    (verdict,) = said(discarded_gradients, trained(discarded, batches))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(("discarded", "hinted"), [(21, True), (1, False)])
def test_without_a_loader_many_are_a_hint(discarded: float, hinted: bool) -> None:
    run = run_of({GRAD_DISCARDED: {"Adam": [discarded] * 10}})
    findings = found(discarded_gradients, run)
    assert [each.confidence for each in findings] == [Confidence.HINT] * hinted
