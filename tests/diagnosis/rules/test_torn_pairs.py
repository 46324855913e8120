import pytest

from holter.diagnosis.rules.torn_pairs import torn_pairs
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, NotExamined
from holter.record.signals import REFETCH_JUDGED, REFETCH_SAMPLES, REFETCH_TORN
from synthetic import run_of, said


def fetched(torn: float, judged: int = 40) -> Run:
    return run_of({REFETCH_TORN: {"train": [torn]}, REFETCH_JUDGED: {"train": [judged]}})


@pytest.mark.parametrize("torn", [0.2, 0.6, 1.0])
def test_flips_that_differ(torn: float) -> None:
    (finding,) = said(torn_pairs, fetched(torn))
    assert isinstance(finding, Finding)
    assert finding.confidence is Confidence.LIKELY
    assert finding.preview
    assert f"{torn:.0%}".replace("%", " %") in finding.summary
    assert "40 pairs" in finding.summary
    assert "flip(-1)" in finding.fix


@pytest.mark.parametrize("torn", [0.0, 0.1])
def test_flips_that_are_the_same(torn: float) -> None:
    (verdict,) = said(torn_pairs, fetched(torn))
    assert isinstance(verdict, Clear)


def test_nothing_that_moves() -> None:
    (verdict,) = said(torn_pairs, run_of({REFETCH_SAMPLES: {"train": [16]}}))
    assert isinstance(verdict, NotExamined)
