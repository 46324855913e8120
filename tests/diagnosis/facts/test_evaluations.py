"""Which evaluation pass is the validation, on runs made by hand."""

import numpy as np
import pytest

from holter.diagnosis.facts import Facts
from holter.record import Event, Run
from holter.record.events import EvaluationSeen
from holter.record.signals import LOSS, LOSS_SUMMED, VAL_LOSS
from synthetic import run_of, series

STEPS = 100


def evaluated(passes: dict[str, int], *events: EvaluationSeen) -> Run:
    """A run with so many passes of each owner, spread over its steps."""
    return run_of(
        {
            LOSS: {"": np.ones(STEPS)},
            LOSS_SUMMED: {"nll_loss": np.zeros(STEPS)},
            VAL_LOSS: {
                owner: series(np.ones(count), np.linspace(0, STEPS - 1, count, dtype=int))
                for owner, count in passes.items()
            },
        },
        events=[Event(0, 0.0, event) for event in events],
    )


VAL = EvaluationSeen("val_loader", "validation")
TEST = EvaluationSeen("test_loader", "test")
TRAIN = EvaluationSeen("train", "train", by_value=True, where="model.py:8")
HELD_OUT = EvaluationSeen("val", "validation", by_value=True, where="model.py:8")


@pytest.mark.parametrize(
    ("passes", "events", "wanted"),
    [
        ({"nll_loss": 9}, (), "nll_loss"),
        ({"": 9, "nll_loss": 9}, (), ""),
        ({"nll_loss on test_loader": 9}, (TEST,), "nll_loss on test_loader"),
        (
            {"nll_loss on test_loader": 9, "nll_loss on val_loader": 9},
            (TEST, VAL),
            "nll_loss on val_loader",
        ),
        ({"nll_loss": 9, "nll_loss on a.py:3": 1}, (), "nll_loss"),
        ({"nll_loss on train": 9, "nll_loss on val": 9}, (TRAIN, HELD_OUT), "nll_loss on val"),
        ({"nll_loss on train": 9}, (TRAIN,), "nll_loss on train"),  # a setting of the script
        ({"nll_loss": 90, "nll_loss on a.py:3": 9}, (), "nll_loss on a.py:3"),  # not at each step
        ({"nll_loss": 9, "l1_loss": 9}, (), "nll_loss"),  # which training uses
    ],
)
def test_the_validation(
    passes: dict[str, int], events: tuple[EvaluationSeen, ...], wanted: str
) -> None:
    evaluation = Facts(evaluated(passes, *events)).evaluation
    assert not isinstance(evaluation, str)
    assert evaluation.owner == wanted


@pytest.mark.parametrize(
    ("passes", "events", "because"),
    [
        ({}, (), "no validation"),
        ({"l1_loss": 9}, (), "different loss functions"),
        ({"nll_loss": 9, "nll_loss on a.py:3": 9}, (), "unnamed data, a.py:3"),
        ({"nll_loss on x": 9}, (EvaluationSeen("x", trained_on=True),), "only the training data"),
        ({"nll_loss on x": 9}, (EvaluationSeen("x", "train"),), "only the training data"),
    ],
)
def test_why_there_is_none(
    passes: dict[str, int], events: tuple[EvaluationSeen, ...], because: str
) -> None:
    evaluation = Facts(evaluated(passes, *events)).evaluation
    assert isinstance(evaluation, str)
    assert because in evaluation
