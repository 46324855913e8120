import pytest

from holter.diagnosis.rules.lagging_average import lagging_average
from holter.record import Event
from holter.record.events import CopyCompared
from holter.record.findings import Clear, Finding, NotExamined, Verdict
from holter.record.signals import LOSS
from synthetic import run_of, said

STEPS = 200


@pytest.mark.parametrize(
    ("copy", "steps", "kind"),
    [
        (CopyCompared("Net", behind=0.95, moved=0.05, written=2 * STEPS), STEPS, Finding),
        (CopyCompared("Net", behind=0.1, moved=0.9, written=2 * STEPS), STEPS, Clear),
        (CopyCompared("Net", behind=0.95, moved=0.05, written=1), STEPS, Clear),  # a snapshot
        (CopyCompared("Net", behind=1.0, moved=0.0, written=STEPS), STEPS, Clear),  # frozen
        (CopyCompared("Net", behind=2.1, moved=2.0, written=STEPS), STEPS, Clear),  # a second tower
        (CopyCompared("Net", behind=0.95, moved=0.05, written=2 * STEPS), 20, NotExamined),
        (None, STEPS, NotExamined),
    ],
)
def test_copies(copy: CopyCompared | None, steps: int, kind: type[Verdict]) -> None:
    events = [] if copy is None else [Event(0, 0.0, copy)]
    (verdict,) = said(lagging_average, run_of({LOSS: {"": [1.0] * steps}}, events=events))
    assert isinstance(verdict, kind)
