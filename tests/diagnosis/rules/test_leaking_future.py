import pytest

from holter.diagnosis.rules.leaking_future import leaking_future
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import (
    CAUSALITY_CHANGE,
    CAUSALITY_LATER,
    CAUSALITY_MODULES,
    CAUSALITY_ROUNDING,
)
from synthetic import found, run_of, said, series


def replaced(*reach: int, later: float = 3.0, size: float = 0.5, module: str = "") -> Run:
    """Ten positions, of which each sees the inputs that are so many positions after it."""

    def change(places: range) -> list[float]:
        begin = places.start
        seen = [any(at + each in places for each in reach) for at in range(begin)]
        return [size if each else 0.0 for each in seen]

    changes = {f"inputs from {cut} on": change(range(cut, 10)) for cut in (1, 5, 9)}
    if reach:
        changes |= {f"input {at} alone": change(range(at, at + 1)) for at in range(1, 10)}
    signals = {
        CAUSALITY_CHANGE: changes,
        CAUSALITY_LATER: {f"inputs from {cut} on": [later] for cut in (1, 5, 9)},
        CAUSALITY_ROUNDING: {"": [1e-6]},
    }
    if module:
        signals[CAUSALITY_MODULES] = {module: series([0.2], [3])}
    return run_of(signals)


def test_silent_on_a_causal_model() -> None:
    (verdict,) = said(leaking_future, replaced())
    assert isinstance(verdict, Clear)
    assert "9 outputs" in verdict.because


def test_outputs_that_never_change_tell_nothing() -> None:
    (verdict,) = said(leaking_future, replaced(later=0.0))
    assert isinstance(verdict, NotExamined)


def test_all_later_inputs() -> None:
    (finding,) = found(leaking_future, replaced(*range(1, 10), module="block.attention"))
    assert finding.confidence is Confidence.CERTAIN
    assert "output 3 on inputs 4 to 9" in finding.summary
    assert "9 of 9 outputs" in finding.summary
    assert finding.evidence[1].owner == "block.attention"


def test_one_ahead() -> None:
    (finding,) = found(leaking_future, replaced(1))
    assert "output 3 on input 4)" in finding.summary


@pytest.mark.parametrize(("size", "speaks"), [(1e-7, False), (9e-6, False), (2e-5, True)])
def test_rounding(size: float, speaks: bool) -> None:
    assert bool(found(leaking_future, replaced(1, size=size))) is speaks
