import pytest

from holter.diagnosis.rules.unset_running_statistics import unset_running_statistics
from holter.record import Event
from holter.record.events import CopyCompared
from holter.record.findings import Clear, Finding, NotExamined, Verdict
from holter.record.signals import LOSS
from synthetic import run_of, said

STEPS = 200


@pytest.mark.parametrize(
    ("copy", "kind"),
    [
        (CopyCompared("Net", behind=0.1, moved=0.9, written=STEPS, unset_norms=2), Finding),
        (CopyCompared("Net", behind=0.1, moved=0.9, written=STEPS), Clear),
        (CopyCompared("Net", behind=1.0, moved=0.0, written=0, unset_norms=2), Clear),  # frozen
        (CopyCompared("Net", behind=0.1, moved=0.9, written=1, unset_norms=2), Clear),  # loaded
        (None, NotExamined),
    ],
)
def test_copies(copy: CopyCompared | None, kind: type[Verdict]) -> None:
    events = [] if copy is None else [Event(0, 0.0, copy)]
    run = run_of({LOSS: {"": [1.0] * STEPS}}, events=events)
    (verdict,) = said(unset_running_statistics, run)
    assert isinstance(verdict, kind)
