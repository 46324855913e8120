import numpy as np
import pytest

from holter.diagnosis.rules.excessive_dropout import excessive_dropout
from holter.record import Event, Run
from holter.record.events import ExperimentsChosen
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import EVAL_GAP_DROPPED, EVAL_GAP_LOSS, EVAL_GAP_START, LOSS
from synthetic import found, run_of, said, series
from validations import CHANCE, STEPS, validated

PASSES = 10


def dropped(
    share: float = 0.9,
    *,
    train: float = 1.5,
    quiet: float | None = None,
    evaluated: float = 0.8,
    validation: float = 0.85,
    accuracy: float = 0.4,
    asked: bool = False,
) -> Run:
    """A run whose training loss goes from 2.3 to `train`, measured when it has ended."""
    losses = {
        "train": train,
        "train without dropout": evaluated if quiet is None else quiet,
        "batch norm in eval mode": evaluated,
        "eval": evaluated,
    }
    events = [Event(0, 0.0, ExperimentsChosen(("eval-gap",)))] if asked else []
    late = 1 - np.exp(-np.arange(PASSES, dtype=float))
    return validated(
        2.3 - (2.3 - train) * late,
        np.full(PASSES, validation),
        accuracy=CHANCE + (accuracy - CHANCE) * late,
        more={
            EVAL_GAP_LOSS: {trial: series([loss]) for trial, loss in losses.items()},
            EVAL_GAP_START: {"": series([2.4])},
            EVAL_GAP_DROPPED: {"body.3": series([share])},
        },
        events=events,
    )


@pytest.mark.parametrize(
    ("share", "confidence"), [(0.9, Confidence.LIKELY), (0.75, Confidence.HINT)]
)
def test_a_share_to_keep_given_as_a_share_to_drop(share: float, confidence: Confidence) -> None:
    (finding,) = found(excessive_dropout, dropped(share))
    assert finding.confidence is confidence
    assert "body.3" in finding.fix
    assert len(finding.evidence) == 4


def test_a_training_that_learns_nothing_is_a_hint() -> None:
    nothing = {"train": 2.28, "evaluated": 2.29, "validation": 2.29, "accuracy": 0.1}
    (finding,) = found(excessive_dropout, dropped(0.95, **nothing))
    assert finding.confidence is Confidence.HINT
    assert isinstance(said(excessive_dropout, dropped(0.75, **nothing))[0], Clear)


@pytest.mark.parametrize(
    "run",
    [
        dropped(0.5),  # of a classifier's head
        dropped(0.0),  # nothing, or what the model reconstructs
        dropped(evaluated=1.2),
        dropped(evaluated=1.5),  # Monte-Carlo dropout drops in eval mode, too
        dropped(quiet=1.4),  # batch norm makes the difference
        dropped(validation=1.6),  # without it, the model would overfit
    ],
)
def test_stays_silent(run: Run) -> None:
    (verdict,) = said(excessive_dropout, run)
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    "run",
    [
        dropped(train=0.7, evaluated=0.3, validation=0.3, accuracy=0.8),
        dropped(accuracy=0.9),  # most training samples are right nevertheless
        dropped(evaluated=0.1, validation=0.1),  # eval mode leaves nothing to learn
    ],
)
def test_training_that_works_nevertheless(run: Run) -> None:
    (verdict,) = said(excessive_dropout, run)
    assert isinstance(verdict, Normal)


def test_without_a_baseline_the_initial_loss_is_compared() -> None:
    whole = dropped()
    signals = (EVAL_GAP_LOSS, EVAL_GAP_START, EVAL_GAP_DROPPED, LOSS)
    run = run_of({signal: whole[signal] for signal in signals})
    (finding,) = found(excessive_dropout, run)
    assert "below the initial loss" in finding.summary


def test_says_what_it_lacks() -> None:
    lacking = run_of({LOSS: {"": np.ones(PASSES * STEPS)}})
    for run in (lacking, dropped(asked=True), dropped(train=np.nan)):
        (verdict,) = said(excessive_dropout, run)
        assert isinstance(verdict, NotExamined)
