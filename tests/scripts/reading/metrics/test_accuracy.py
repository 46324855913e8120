"""Readers of accuracy, and twins without a pattern."""

from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    """The kinds of patterns in a source."""
    return {pattern.kind for pattern in read(dedent(text))}


def loop(body: str, over: str = "loader") -> str:
    """A loop over batches."""
    return f"for x, y in {over}:\n{indent(dedent(body), '    ')}\n"


FOUND = {
    "argmax of all": (
        loop("right += (model(x).argmax() == y).sum().item()"),
        loop("acc = (logits.argmax() == y).float().mean()", "val_dl"),
        "def accuracy(out, y):\n    return (out.argmax() == y).float().mean()\naccuracy(a, b)",
    ),
}
NOT_FOUND = {
    "argmax of all": (
        loop("right += (model(x).argmax(1) == y).sum().item()"),
        loop("right += (model(x[None]).argmax() == y).sum().item()", "test_batches"),
        loop("right += (model(x).argmax() == y).float()", "zip(rows, labels)"),
        loop("right += model(x).argmax() == y"),
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
