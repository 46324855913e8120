import numpy as np
import pytest

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import geometric, median
from holter.record.signals import GRAD_NORM, PARAMETER_OPTIMIZER, PARAMETER_TRAINABLE
from layered import by_layer, falling, layered, layers
from synthetic import run_of, series


def test_layers_in_order_of_registration_without_vectors() -> None:
    assert [each.name for each in Facts(run_of({}, meta=layers(3))).layers] == [
        "0.weight",
        "1.weight",
        "2.weight",
    ]


def test_frozen_and_foreign_weights_are_left_out() -> None:
    run = layered(
        falling(),
        {PARAMETER_OPTIMIZER: by_layer([0, -1, 0]), PARAMETER_TRAINABLE: by_layer([1, 1, 0])},
        layers(3),
    )
    assert [each.name for each in Facts(run).layers] == ["0.weight"]


def test_a_sample_keeps_the_order_asked_for_and_drops_steps_without_readings() -> None:
    signals = {"a": series([1, np.inf], [0, 4]), "b": series([3, 5], [0, 8])}
    run = run_of({GRAD_NORM: {**signals, "c": [1.0] * 9}})
    read = Facts(run).sample(GRAD_NORM, ["b", "missing", "a"])
    assert read.owners == ("b", "a")
    assert read.steps.tolist() == [0, 4, 8]
    np.testing.assert_array_equal(read.values, [[3, 1], [np.nan, np.nan], [5, np.nan]])


def test_long_runs_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holter.diagnosis.facts.layers.CELLS", 160)
    read = Facts(run_of({GRAD_NORM: {"a": np.arange(1000.0)}})).sample(GRAD_NORM)
    assert len(read) == 160
    assert read.steps[0] == 0
    assert read.steps[-1] == 999


def test_median_of_what_is_there() -> None:
    values = np.array([[1, np.nan, np.nan], [3, 4, np.nan], [8, 6, np.nan]])
    np.testing.assert_array_equal(median(values, axis=0), [3, 5, np.nan])
    assert median(np.empty((3, 0)), axis=1).shape == (3,)


@pytest.mark.parametrize(
    ("levels", "factor"),
    [
        ([1, 10, 100, 1000], 1000),
        ([1000, 100, 10, 1], 1e-3),
        ([1, 1, 1, 1000], 1),  # one jump
        ([1, 100, 1, 1000], 1),  # up and down
        ([1, 10, 100], 1),  # too few
    ],
)
def test_geometric(levels: list[float], factor: float) -> None:
    assert geometric(levels, layers=4) == pytest.approx(factor)
