import numpy as np
import pytest

from holter.diagnosis.rules.dead_units import dead_units
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import ACTIVATION_DEAD_FRACTION
from layered import falling, flat, layered, layers
from synthetic import found, said, series


def run(loss: np.ndarray, dead: dict[str, list[float]]) -> Run:
    windows = {name: series(shares, range(3, 4 * len(shares), 4)) for name, shares in dead.items()}
    return layered(loss, {ACTIVATION_DEAD_FRACTION: windows}, layers(2))


def test_a_layer_that_died_and_a_bad_loss() -> None:
    (finding,) = found(dead_units, run(flat(), {"1": [0.0, 0.5, 1.0, 1.0], "3": [0.2] * 4}))
    assert finding.confidence is Confidence.LIKELY
    assert finding.severity is Severity.ERROR
    assert finding.onset == 11
    assert finding.evidence[0].owner == "1"


def test_many_dead_units_are_a_hint() -> None:
    (finding,) = found(dead_units, run(flat(), {"1": [0.8] * 4}))
    assert finding.confidence is Confidence.HINT


def test_a_dead_layer_is_a_hint_even_where_the_loss_falls() -> None:
    (finding,) = found(dead_units, run(falling(), {"1": [1.0] * 4}))
    assert finding.confidence is Confidence.HINT
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("loss", "shares"),
    [
        (flat(), [0.5] * 4),  # as many sound networks have
        (flat(), [0.99, 0.95, 0.85, 0.75]),  # they come back
        (flat(), [0.1, 0.1, 0.1, 1.0]),  # one window
    ],
)
def test_silent(loss: np.ndarray, shares: list[float]) -> None:
    (verdict,) = said(dead_units, run(loss, {"1": shares}))
    assert isinstance(verdict, Clear)


def test_boundary_and_nan() -> None:
    assert found(dead_units, run(flat(), {"1": [np.nan, 0.71, 0.71]}))
    assert not found(dead_units, run(flat(), {"1": [np.nan, 0.69, 0.69]}))
    assert found(dead_units, run(flat(), {"1": [0.6, 0.6]}), share=0.5)


def test_too_few_windows() -> None:
    (verdict,) = said(dead_units, run(flat(), {"1": [1.0]}))
    assert isinstance(verdict, NotExamined)


def test_no_damage() -> None:
    (note,) = said(dead_units, run(falling(), {"1": [0.8] * 4}))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"
