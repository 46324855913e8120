import pytest

from holter.diagnosis.rules.unset_running_statistics import unset_running_statistics
from holter.record import Event
from holter.record.events import CopyCompared, StatisticsCompared
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined, Verdict
from holter.record.signals import EVAL_GAP_LOSS, LOSS
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


def statistics(
    left: float,
    variance: float = 4.0,
    mean: float = 0.1,
    momentum: float = 0.001,
    rest: float = 0.1,
) -> StatisticsCompared:
    return StatisticsCompared("norm", 3, STEPS, left, momentum, mean, variance, rest)


@pytest.mark.parametrize(
    ("compared", "gap", "kind"),
    [
        (statistics(0.8), 10.0, Finding),
        (statistics(0.8), None, Finding),
        (statistics(0.8, variance=1.1, mean=2.0), 10.0, Finding),
        (statistics(0.8), 1.0, Normal),  # the model is as good in eval mode
        (statistics(0.01), 10.0, Clear),  # momentum small, run long
        (statistics(0.8, variance=1.1), 10.0, Clear),  # normalised inputs: 0 and 1 are right
        (statistics(0.8, rest=0.9), 10.0, Clear),  # of a pretrained model
    ],
)
def test_statistics_of_the_training(
    compared: StatisticsCompared, gap: float | None, kind: type[Verdict]
) -> None:
    losses = {} if gap is None else {EVAL_GAP_LOSS: {"train": [0.1], "eval": [0.1 * gap]}}
    run = run_of({LOSS: {"": [1.0] * STEPS}, **losses}, events=[Event(0, 0.0, compared)])
    (verdict,) = said(unset_running_statistics, run)
    assert isinstance(verdict, kind)
    assert not isinstance(verdict, Finding) or verdict.confidence is Confidence.CERTAIN


def test_very_few_updates_with_the_usual_momentum_are_a_hint() -> None:
    event = Event(0, 0.0, statistics(0.3, momentum=0.1))
    run = run_of({LOSS: {"": [1.0] * STEPS}}, events=[event])
    (verdict,) = said(unset_running_statistics, run)
    assert isinstance(verdict, Finding)
    assert verdict.confidence is Confidence.HINT
