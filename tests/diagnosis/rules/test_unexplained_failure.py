import numpy as np
import pytest

from holter import check, diagnose
from holter.diagnosis.damage import UNEXPLAINED
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.rules.unexplained_failure import unexplained_failure
from holter.record.events import Event, ExperimentsChosen
from holter.record.findings import Clear, Confidence, Finding, NotExamined, Severity
from holter.record.signals import (
    ACCURACY,
    LOSS,
    LOSS_ROOT_SHARE,
    OUTPUT_SPREAD,
    TARGET_CLASSES,
    TARGET_ENTROPY,
    TARGET_LARGEST_CLASS_FRACTION,
    UPDATE_RATIO,
)
from layered import broken, falling, flat
from synthetic import found, run_of, said
from validations import validated

PASSES = np.linspace(2.2, 0.2, 8)


def noisy() -> np.ndarray:
    """A loss that stays where it is, too noisy for `flat-loss`."""
    return flat() * (1 + 0.1 * np.random.default_rng(3).normal(size=200))


def test_the_failure_itself_is_reported() -> None:
    checkup = check(run_of({LOSS: {"": noisy()}}))
    diagnosis = diagnose(checkup)
    assert checkup.outcome.state is OutcomeState.LEARNED_NOTHING
    assert diagnosis.leading is not None
    assert diagnosis.leading.rule == UNEXPLAINED
    assert diagnosis.leading.severity is Severity.WARNING  # of an unknown loss
    assert diagnosis.leading.confidence is Confidence.HINT
    assert not diagnosis.known
    assert "holter doctor" in diagnosis.experiments[0]


@pytest.mark.parametrize(("loss", "cause"), [(flat(), "flat-loss"), (broken(), "nonfinite-loss")])
def test_another_finding_that_tells_it_is_enough(loss: np.ndarray, cause: str) -> None:
    run = run_of({LOSS: {"": loss}})
    checkup = check(run)
    assert found(unexplained_failure, run)
    assert cause in {finding.rule for finding in checkup.findings}
    assert UNEXPLAINED not in {finding.rule for finding in checkup.findings}
    assert any(clear.rule == UNEXPLAINED for clear in checkup.clear)


def test_a_finding_that_explains_something_else_is_not() -> None:
    run = run_of({LOSS: {"": noisy()}, UPDATE_RATIO: {"weight": np.full(200, 0.01)}})
    assert UNEXPLAINED in {finding.rule for finding in check(run).findings}


def test_a_run_that_learned_is_clear() -> None:
    (verdict,) = said(unexplained_failure, run_of({LOSS: {"": falling()}}))
    assert isinstance(verdict, Clear)
    assert verdict.because.startswith("loss 2.")


def test_an_outcome_that_is_unknown_is_not_examined() -> None:
    (verdict,) = said(unexplained_failure, run_of({LOSS: {"": falling(10)}}))
    assert isinstance(verdict, NotExamined)


def test_a_run_that_learned_nothing_for_validation_is_never_clear() -> None:
    run = validated(PASSES, np.linspace(2.4, 6, 8), val_accuracy=np.full(8, 0.1))
    checkup = check(run, ignore=["validation-*"])
    assert checkup.outcome.state is OutcomeState.MEMORISED
    assert isinstance(checkup.findings[0], Finding)
    assert checkup.findings[0].rule == UNEXPLAINED
    assert checkup.findings[0].severity is Severity.ERROR


def test_overfitting_is_an_outcome_but_no_failure() -> None:
    losses = np.r_[np.linspace(2, 0.5, 5), np.linspace(0.6, 2.2, 10)]
    checkup = check(validated(np.linspace(2, 0.05, 15), losses), select=["flat-loss"])
    assert checkup.outcome.state is OutcomeState.OVERFITS
    assert checkup.outcome.title.startswith("overfits since step")
    assert not checkup.outcome.bad


@pytest.mark.parametrize(
    ("accuracy", "is_part", "is_reported"),
    [(0.05, False, True), (0.05, True, False), (0.9, False, False)],
)
def test_a_run_that_ends_before_it_learned_is_a_hint(
    accuracy: float, is_part: bool, is_reported: bool
) -> None:
    """A loss that falls towards the best constant prediction, and is above it at the end."""
    steps, owner = 300, "cross_entropy"
    noise = 0.01 * np.random.default_rng(0).normal(size=steps)
    run = run_of(
        {
            LOSS: {"": np.linspace(3.6, 3.3, steps) + noise},
            LOSS_ROOT_SHARE: {"": np.ones(steps)},
            TARGET_ENTROPY: {owner: np.full(steps, 3.1)},
            TARGET_CLASSES: {owner: np.full(steps, 30.0)},
            TARGET_LARGEST_CLASS_FRACTION: {owner: np.full(steps, 0.1)},
            OUTPUT_SPREAD: {owner: np.full(steps, 0.15)},
            ACCURACY: {owner: np.full(steps, accuracy)},
        },
        events=[Event(0, 0.0, ExperimentsChosen(("data",)))] if is_part else [],
    )
    if is_reported:
        assert check(run).outcome.state is OutcomeState.FALLING
        (verdict,) = found(unexplained_failure, run)
        assert verdict.confidence is Confidence.HINT
        assert "lr-range" in verdict.fix
    else:
        assert not found(unexplained_failure, run)
