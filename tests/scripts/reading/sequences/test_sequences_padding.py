"""Readers of padding, and twins without a pattern."""

from textwrap import dedent

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    """The kinds of patterns in a source."""
    return {pattern.kind for pattern in read(dedent(text))}


IGNORE = "loss = nn.CrossEntropyLoss(ignore_index=-100)\n"
FOUND = {
    "counted padding": (
        IGNORE + "y = pad_sequence(labels, batch_first=True)",
        IGNORE + "PAD = 0\ny = pad_sequence([tags for _, tags in batch], True, PAD)",
        "IGNORE = -1\nf(a, b, ignore_index=IGNORE)\ny = pad_sequence(tags, padding_value=0)",
    ),
}
NOT_FOUND = {
    "counted padding": (
        IGNORE + "y = pad_sequence(labels, padding_value=-100)",
        IGNORE + "x = pad_sequence(words)",
        IGNORE + "y = pad_sequence(labels)\ny[y == 0] = -100",
        "PAD = vocab['<pad>']\nf(a, b, ignore_index=vocab.pad)\npad_sequence(labels, True, PAD)",
        "y = pad_sequence(labels)\nloss = (f(out, y) * mask).sum()",
        "PAD = 0\nf(a, b, ignore_index=0)\ny = pad_sequence(labels, padding_value=PAD)",
    ),
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_a_mistake_is_found(kind: str, text: str) -> None:
    assert kinds(text) == {kind}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in NOT_FOUND.items() for text in texts]
)
def test_ordinary_code_is_none(kind: str, text: str) -> None:
    assert kind not in kinds(text)


def test_each_pattern_has_twins() -> None:
    assert FOUND.keys() == NOT_FOUND.keys()
    assert all(len(texts) >= 3 for texts in (*FOUND.values(), *NOT_FOUND.values()))
