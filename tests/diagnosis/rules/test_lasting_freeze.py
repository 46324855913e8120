import pytest

from holter.diagnosis.rules.lasting_freeze import lasting_freeze
from holter.record import Event, Run, Series
from holter.record.events import StateLoaded
from holter.record.findings import Clear, Confidence, Finding, Normal, Severity
from holter.record.signals import (
    GRAD_NORM,
    PARAMETER_GIVEN,
    PARAMETER_IN_MODEL,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
)
from synthetic import found, run_of, said, series

ENCODER = ["encoder.0.weight", "encoder.0.bias", "encoder.2.weight"]
HEAD = ["head.weight", "head.bias"]
STEPS = 40


def _run(
    frozen: dict[str, Series],
    gradients: dict[str, Series] | None = None,
    *,
    given: float = 1.0,
    loaded: bool = False,
) -> Run:
    names = ENCODER + HEAD
    learned = {name: series([1.0] * STEPS) for name in HEAD}
    unread = {name: series([]) for name in ENCODER}
    events = [Event(0, 0.0, StateLoaded("Encoder 0", 3, 0, 0))] if loaded else []
    return run_of(
        {
            PARAMETER_GIVEN: {name: [given if name in ENCODER else 1.0] for name in names},
            PARAMETER_TRAINABLE: {name: series([1.0]) for name in names} | frozen,
            PARAMETER_OPTIMIZER: {name: [0] for name in names},
            PARAMETER_IN_MODEL: {name: [1.0] for name in names},
            GRAD_NORM: unread | learned | (gradients or {}),
        },
        events=events,
    )


FROM_THE_START = {name: series([0.0]) for name in ENCODER}
AT_TEN = {name: series([1.0, 0.0], [0, 10]) for name in ENCODER}
UNTIL_TEN = {name: series([1.0] * 10) for name in ENCODER}


def test_what_was_never_updated_is_likely_forgotten() -> None:
    (finding,) = found(lasting_freeze, _run(FROM_THE_START))
    assert finding.confidence is Confidence.LIKELY
    assert finding.severity is Severity.WARNING
    assert finding.onset == 0
    assert finding.evidence[0].owner == "encoder.0.weight"
    assert "encoder.* (3 of the optimizer's 5 parameters)" in finding.summary


def test_what_was_trained_before_makes_a_hint() -> None:
    (finding,) = found(lasting_freeze, _run(AT_TEN, UNTIL_TEN))
    assert finding.confidence is Confidence.HINT
    assert finding.onset == 10
    assert "at step 10" in finding.summary


@pytest.mark.parametrize(
    "run",
    [
        _run(FROM_THE_START, given=0.0),  # frozen before the optimizer was made
        _run({name: series([0.0, 1.0], [0, 10]) for name in ENCODER}),  # thawed
        _run(AT_TEN, {name: series([1.0] * STEPS) for name in ENCODER}),  # for an adversary's steps
        _run({name: series([1.0, 0.0], [0, 35]) for name in ENCODER}),  # for the last steps
    ],
)
def test_clear(run: Run) -> None:
    (verdict,) = said(lasting_freeze, run)
    assert isinstance(verdict, Clear)


def test_stages_and_checkpoints_are_excused() -> None:
    stages = {name: series([1.0, 0.0], [0, 5 + 5 * n]) for n, name in enumerate(ENCODER)}
    for run, why in (
        (_run(stages), "in-stages"),
        (_run(FROM_THE_START, loaded=True), "loaded"),
    ):
        (verdict,) = said(lasting_freeze, run)
        assert isinstance(verdict, Normal)
        assert verdict.exception == why
    (verdict,) = said(lasting_freeze, _run(AT_TEN, UNTIL_TEN, loaded=True))
    assert isinstance(verdict, Finding)  # it had begun to learn
