"""Augmentation of the wrong part."""

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


CROP = "T.Compose([T.RandomCrop(32), T.ToTensor()])"
PLAIN = "T.Compose([T.CenterCrop(32), T.ToTensor()])"


@pytest.mark.parametrize(
    "text",
    [
        "tf = {0} if {2}train else {1}",
        "if {2}is_train:\n    tf = {0}\nelse:\n    tf = {1}",
        "def make(train):\n    if {2}train:\n        return {0}\n    return {1}\nmake(True)",
        "steps = {1}\nif {2}augment:\n    steps = {0}",
    ],
)
def test_training_is_augmented(text: str) -> None:
    assert "augmented evaluation" in kinds(text.format(PLAIN, CROP, ""))
    assert "augmented evaluation" in kinds(text.format(CROP, PLAIN, "not "))
    assert not kinds(text.format(CROP, PLAIN, ""))
    assert not kinds(text.format(PLAIN, CROP, "not "))
    assert not kinds(text.format(PLAIN, PLAIN, ""))
