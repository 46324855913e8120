import numpy as np
import pytest

from holter.lab.experiments._samples.columns import (
    best_pair,
    copies,
    distinct,
    information,
    order,
    residue,
)

NUMBERS = np.random.default_rng(0)


def test_different_values() -> None:
    rows = np.array([[1, 1, np.nan, 0], [1, 2, np.nan, np.nan], [1, 3, np.nan, 0]])
    assert distinct(rows).tolist() == [1, 3, 1, 2]


def test_residue_is_what_a_line_leaves() -> None:
    rows, targets = NUMBERS.normal(size=(50, 3)), NUMBERS.normal(size=50)
    rows[:, 1] = 3 - 2 * targets
    rows[:, 2] = 1.0
    left = residue(rows, targets)
    assert left[0] == pytest.approx(1 - np.corrcoef(rows[:, 0], targets)[0, 1] ** 2)
    assert left[1] < 1e-20
    assert left[2] == pytest.approx(1)


def test_order_of_two_classes_is_that_of_pairs() -> None:
    targets = (NUMBERS.random(60) < 0.3).astype(float)
    column = np.round(NUMBERS.normal(size=60) + targets, 1)  # with ties
    pairs = np.sign(column[targets == 1][:, None] - column[targets == 0][None, :])
    assert order(column[:, None], targets)[0] == pytest.approx(abs(pairs.mean()))


def test_order_of_numbers() -> None:
    targets = NUMBERS.normal(size=40)
    rows = np.stack([np.exp(targets), -(targets**3), NUMBERS.normal(size=40), np.ones(40)], axis=1)
    found = order(rows, targets)
    assert found[:2] == pytest.approx([1, 1])
    assert found[2] < 0.5
    assert found[3] == 0


def test_copies_of_the_class() -> None:
    targets = np.tile([0.0, 1.0, 2.0], 20)
    rows = np.stack(
        [
            np.array([7.0, -1.0, 3.0])[targets.astype(int)],  # a value for each
            targets == 1,  # one against all others
            targets > 5,  # constant
            NUMBERS.normal(size=60),
            np.arange(60) % 2,
        ],
        axis=1,
    ).astype(float)
    assert copies(rows, targets, np.array([0.0, 1.0, 2.0])).tolist() == [2, 1, 0, 0, 0]


def test_information_of_any_relation() -> None:
    numbers = np.random.default_rng(1)
    hidden = numbers.normal(size=1500)
    rows = np.stack([hidden, numbers.normal(size=1500), np.ones(1500)], axis=1)
    told = information(rows, np.abs(hidden), classes=False)
    assert told[0] > 0.9
    assert told[1] < 0.05
    assert told[2] == 0
    classes = np.digitize(np.abs(hidden), [0.4, 1.0]).astype(float)
    assert information(rows, classes, classes=True)[0] > 0.93


def test_the_two_columns_that_give_the_target() -> None:
    numbers = np.random.default_rng(1)
    rows = numbers.normal(size=(500, 9))
    rows[:, 5] = 3 * rows[:, 2] + 0.5 * rows[:, 5]
    pair = best_pair(rows, 2 * rows[:, 5] - 6 * rows[:, 2])
    assert pair is not None
    assert pair.columns == (2, 5)
    assert pair.order == pytest.approx(1)
    assert pair.next_order < 0.3
