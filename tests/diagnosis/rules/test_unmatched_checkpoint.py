import pytest

from holter.diagnosis.rules.unmatched_checkpoint import unmatched_checkpoint
from holter.record import Event
from holter.record.events import StateLoaded
from holter.record.findings import Clear, Confidence, Finding, NotExamined
from holter.record.signals import LOSS
from synthetic import run_of, said


def verdict(*loads: StateLoaded) -> object:
    events = [Event(0, 0.0, load) for load in loads]
    (said_once,) = said(unmatched_checkpoint, run_of({LOSS: {"": [1.0] * 5}}, events=events))
    return said_once


NONE = StateLoaded("Net 0", found=0, missing=8, unexpected=8, renamed=8, example=("a.b", "m.a.b"))
HALF = StateLoaded("Net 0", found=8, missing=8, unexpected=8, renamed=8, example=("a.b", "m.a.b"))
HEAD = StateLoaded("Net 0", found=60, missing=2, unexpected=2, example=("head.w", "fc.w"))
MOVED = StateLoaded("Net 0", found=60, missing=2, unexpected=2, renamed=2, example=("w", "m.w"))
WRAPPED = StateLoaded("Net 0", found=10, missing=12, unexpected=4, renamed=4, example=("a", "b"))
DECODER = StateLoaded("Net 0", found=20, missing=30, unexpected=2, renamed=2, example=("a", "b"))
ALL = StateLoaded("Net 0", found=8, missing=0, unexpected=0)
EMPTY = StateLoaded("Net 0", found=0, missing=8, unexpected=0)


@pytest.mark.parametrize(
    ("load", "confidence"),
    [(NONE, Confidence.CERTAIN), (HALF, Confidence.LIKELY), (WRAPPED, Confidence.LIKELY)],
)
def test_names_that_do_not_fit(load: StateLoaded, confidence: Confidence) -> None:
    finding = verdict(load)
    assert isinstance(finding, Finding)
    assert finding.confidence is confidence
    assert "Net has" in finding.summary


def test_an_empty_state_is_a_hint() -> None:
    finding = verdict(EMPTY)
    assert isinstance(finding, Finding)
    assert finding.confidence is Confidence.HINT
    assert "is empty" in finding.summary


@pytest.mark.parametrize(
    "loads", [(HEAD,), (MOVED,), (DECODER,), (ALL,), (NONE, ALL), (EMPTY, ALL)]
)
def test_silent(loads: tuple[StateLoaded, ...]) -> None:
    """A new head or decoder, one below another name, a complete state, and one that fits later."""
    assert isinstance(verdict(*loads), Clear)


def test_nothing_was_loaded() -> None:
    assert isinstance(verdict(), NotExamined)
