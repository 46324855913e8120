from holter.diagnosis.rules.late_clipping import late_clipping
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import CLIP_LATE, CLIP_LIMIT, CLIP_NORM
from synthetic import found, run_of, said


def test_clipped_after_every_update() -> None:
    run = run_of(
        {CLIP_LATE: {"": [1] * 20}, CLIP_LIMIT: {"": [1.0] * 20}, CLIP_NORM: {"": [3.0] * 20}}
    )
    (finding,) = found(late_clipping, run)
    assert finding.confidence is Confidence.CERTAIN
    assert "20 of 20" in finding.summary
    assert "exceed the limit of 1" in finding.summary


def test_without_norms() -> None:
    (finding,) = found(late_clipping, run_of({CLIP_LATE: {"": [1] * 5}}))
    assert len(finding.evidence) == 1


def test_clipped_in_time() -> None:
    (verdict,) = said(late_clipping, run_of({CLIP_LATE: {"": [0] * 20}}))
    assert isinstance(verdict, Clear)


def test_sometimes_late_is_clear() -> None:
    (verdict,) = said(late_clipping, run_of({CLIP_LATE: {"": [1, 1, 1, 0] * 20}}))
    assert isinstance(verdict, Clear)


def test_too_short() -> None:
    (verdict,) = said(late_clipping, run_of({CLIP_LATE: {"": [1] * 4}}))
    assert isinstance(verdict, NotExamined)
