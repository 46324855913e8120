from holter.diagnosis.rules.unapplied_gradients import unapplied_gradients
from holter.record import Event
from holter.record.events import GradientsUnapplied
from holter.record.findings import Clear, NotExamined
from holter.record.signals import LOSS
from synthetic import found, run_of, said


def _run(calls: int, steps: int = 0):
    event = Event(0, 0.0, GradientsUnapplied(calls, "Adam"))
    return run_of({LOSS: {"": [1.0] * steps}} if steps else {}, events=[event])


def test_many_backward_passes_without_a_step_are_reported() -> None:
    (finding,) = found(unapplied_gradients, _run(168))
    assert "168" in finding.summary


def test_a_few_are_not_examined_and_steps_are_clear() -> None:
    (few,) = said(unapplied_gradients, _run(3))
    (steps,) = said(unapplied_gradients, _run(168, steps=5))
    assert isinstance(few, NotExamined)
    assert isinstance(steps, Clear)
