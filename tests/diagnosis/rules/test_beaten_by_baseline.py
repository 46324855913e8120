import numpy as np
import pytest

from holter.diagnosis.facts import Facts
from holter.diagnosis.rules.beaten_by_baseline import beaten_by_baseline
from holter.record import Event, Run
from holter.record.events import NotApplicable
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import (
    BASELINE_BALANCED,
    BASELINE_CHANCE,
    BASELINE_LOSS,
    BASELINE_RANKING,
    BASELINE_ROWS,
    BASELINE_SCORE,
    LOSS,
    VAL_LOSS,
)
from synthetic import found, run_of, said, series

LEVEL = np.full(200, 1.0)


def run_with(
    network: float,
    linear: float,
    *,
    constant: float = 0.0,
    rows: int = 400,
    chance: float = -20.0,
    loss: np.ndarray = LEVEL,
    validation: tuple[float, ...] = (),
    **classes: tuple[float, float],
) -> Run:
    signals = {
        LOSS: {"": loss},
        BASELINE_ROWS: {"train": [1200], "valid": [rows]},
        BASELINE_SCORE: {
            "network": [network],
            "network, training rows": [network],
            "constant": [constant],
            "linear": [linear],
            "neighbours": [linear - 0.1],
        },
        BASELINE_CHANCE: {"linear": [chance], "neighbours": [-1.0]},
        BASELINE_LOSS: {"network": [1.0]},
    }
    if "balanced" in classes:
        own, theirs = classes["balanced"]
        signals[BASELINE_BALANCED] = {"network": [own], "linear": [theirs], "constant": [0.5]}
    if "ranking" in classes:
        own, theirs = classes["ranking"]
        signals[BASELINE_RANKING] = {"network": [own], "linear": [theirs]}
    if validation:
        passes = np.linspace(9, 199, len(validation)).astype(int)
        signals[VAL_LOSS] = {"mse_loss": series(validation, passes)}
    return run_of(signals)


def test_the_comparison_is_with_the_best_simple_model() -> None:
    compared = Facts(run_with(0.2, 0.8)).comparison
    assert compared is not None
    assert (compared.name, compared.rows, compared.fitted) == ("linear", 400, 1200)
    assert compared.share == pytest.approx(0.25)
    assert compared.gain == pytest.approx(0.8)
    assert compared.log_chance == -20
    assert not compared.is_class


def test_the_metric_that_favours_the_network_most_counts() -> None:
    run = run_with(0.5, 0.9, constant=0.5, balanced=(0.7, 0.9), ranking=(0.8, 0.95))
    compared = Facts(run).comparison
    assert compared is not None and compared.is_class
    assert compared.share == pytest.approx(0.3 / 0.45)
    assert compared.gain == pytest.approx(0.4)


def test_without_a_gain_nothing_can_be_worse() -> None:
    compared = Facts(run_with(-0.5, -0.1)).comparison
    assert compared is not None and compared.share == 1


def test_fires_where_the_network_is_far_worse() -> None:
    (finding,) = found(beaten_by_baseline, run_with(0.1, 0.9))
    assert finding.confidence is Confidence.LIKELY
    (finding,) = found(beaten_by_baseline, run_with(0.4, 0.9))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(
    "run",
    [
        run_with(0.6, 0.9),
        run_with(0.0, 0.05),
        run_with(0.1, 0.9, chance=-3.0),
        run_with(0.5, 0.9, constant=0.5, balanced=(0.9, 0.9)),
    ],
)
def test_is_clear_without_a_large_and_certain_difference(run: Run) -> None:
    (verdict,) = said(beaten_by_baseline, run)
    assert isinstance(verdict, Clear)


def test_a_far_better_evaluation_and_a_steep_fall_are_excuses() -> None:
    better = run_with(-0.1, 0.9, validation=(0.9, 0.5, 0.1))
    steep = run_with(-0.1, 0.9, loss=np.geomspace(100, 1, 200))
    names = [
        [each.exception for each in said(beaten_by_baseline, run) if isinstance(each, Normal)]
        for run in (better, steep)
    ]
    assert names == [["better-before"], ["still-falling"]]
    assert found(beaten_by_baseline, run_with(-0.1, 0.9, validation=(1.1, 1.0, 1.0)))


def test_says_why_nothing_was_compared() -> None:
    (few,) = said(beaten_by_baseline, run_with(0.1, 0.9, rows=60))
    assert isinstance(few, NotExamined) and "60 of the 100" in few.because
    why = NotApplicable("baseline", "no time was left", (BASELINE_SCORE.name,))
    (late,) = said(beaten_by_baseline, run_of({LOSS: {"": LEVEL}}, events=[Event(199, 0.0, why)]))
    assert isinstance(late, NotExamined) and late.because == "no time was left"
    (none,) = said(beaten_by_baseline, run_of({LOSS: {"": LEVEL}}))
    assert isinstance(none, NotExamined)
