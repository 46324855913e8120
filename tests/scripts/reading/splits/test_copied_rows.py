"""Rows of other parts that are copied into training, or encoded by it."""

from types import ModuleType

import pytest

from holter.scripts.reading.splits import leaks, target_encodings
from tests.scripts.reading.found import kinds_by

_SPLIT = "train, test = train_test_split(df)"
_MEANS = (
    "rate = {}.groupby('city')['target'].mean()\nfor p in ({}):\n    p['r'] = p['city'].map(rate)"
)


@pytest.mark.parametrize(
    ("readers", "text", "kind"),
    [
        (leaks, f"bad = df[df.y == 1]\ndf = pd.concat([df, bad.sample(9)])\n{_SPLIT}",
         "copied before split"),
        (leaks, f"df = pd.concat([df, df[df.y == 1]])\n{_SPLIT}", "copied before split"),
        (leaks, f"few = df[df.y == 1]\ndf = pd.concat([df, few, few])\n{_SPLIT}",
         "copied before split"),
        (target_encodings, _MEANS.format("pd.concat([train, test])", "train, test"), "own target"),
        (target_encodings,
         f"every = pd.concat([train, val])\n{_MEANS.format('every', 'train, val')}", "own target"),
        (target_encodings, _MEANS.format("pd.concat((train, val, test))", "val, test"),
         "own target"),
    ],
)  # fmt: skip
def test_it_finds_rows_of_other_parts(readers: ModuleType, text: str, kind: str) -> None:
    assert kind in kinds_by(text, readers)


@pytest.mark.parametrize(
    ("readers", "text"),
    [
        (leaks, f"{_SPLIT}\nbad = train[train.y == 1]\ntrain = pd.concat([train, bad.sample(9)])"),
        (leaks, f"new = other.sample(9)\ndf = pd.concat([df, new])\n{_SPLIT}"),
        (target_encodings, _MEANS.format("train", "val, test")),
    ],
)
def test_it_is_silent_about_rows_of_the_training(readers: ModuleType, text: str) -> None:
    assert not kinds_by(text, readers)
