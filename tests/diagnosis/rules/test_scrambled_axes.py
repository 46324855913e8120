from holter.diagnosis.rules.scrambled_axes import scrambled_axes
from holter.record.events import AxisMoved, Event
from holter.record.findings import Clear, Confidence
from holter.record.signals import RESHAPE_MOVED
from synthetic import found, run_of, said


def test_reports_the_line() -> None:
    run = run_of(
        {RESHAPE_MOVED: {"": [1.0, 1.0]}},
        events=[Event(0, 0.0, AxisMoved("a.py:7", (5, 20, 6), (5, 6, 20)))],
    )
    (finding,) = found(scrambled_axes, run)
    assert finding.confidence is Confidence.LIKELY
    assert "a.py:7" in finding.summary
    assert "(5, 20, 6)" in finding.evidence[0].says


def test_is_clear_of_other_reshapes() -> None:
    (verdict,) = said(scrambled_axes, run_of({RESHAPE_MOVED: {"": [0.0, 0.0, 0.0]}}))
    assert isinstance(verdict, Clear)
