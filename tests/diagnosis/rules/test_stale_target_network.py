import pytest

from holter.diagnosis.rules.stale_target_network import stale_target_network
from holter.record import Event
from holter.record.events import CopyCompared
from holter.record.findings import Clear, Confidence, Finding, NotExamined, Verdict
from holter.record.signals import LOSS, LOSS_LARGEST_OUTPUT
from synthetic import run_of, said

NEVER = CopyCompared("QNet", behind=1.0, moved=0.01, written=2)
SYNCHRONISED = CopyCompared("QNet", behind=0.05, moved=0.98, written=30)
AVERAGED = CopyCompared("QNet", behind=0.95, moved=0.05, written=300)


@pytest.mark.parametrize(
    ("copies", "steps", "kind"),
    [
        ([NEVER], 300, Finding),
        ([SYNCHRONISED, NEVER], 300, Clear),  # kept for reference
        ([SYNCHRONISED], 300, Clear),
        ([AVERAGED], 300, Clear),  # that is a lagging average
        ([], 300, NotExamined),
        ([NEVER], 100, NotExamined),
    ],
)
def test_a_copy_that_keeps_its_initial_weights(
    copies: list[CopyCompared], steps: int, kind: type[Verdict]
) -> None:
    readings = {LOSS: {"": [1.0] * steps}, LOSS_LARGEST_OUTPUT: {"": [0.0] * 20}}
    run = run_of(readings, events=[Event(0, 0.0, each) for each in copies])
    (verdict,) = said(stale_target_network, run)
    assert isinstance(verdict, kind)
    if isinstance(verdict, Finding):
        assert verdict.confidence is Confidence.HINT
