"""Readers of best scores, and twins without a pattern."""

from textwrap import dedent

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    """The kinds of patterns in a source."""
    return {pattern.kind for pattern in read(dedent(text))}


FOUND = {
    "kept worst": (
        "for e in range(9):\n    if val_loss > best:\n        best = val_loss",
        "for e in range(9):\n    if acc < best_acc:\n        best_acc, state = acc, copy(model)",
        "if e > 2 and val_rmse >= best:\n    best = val_rmse",
    ),
}
NOT_FOUND = {
    "kept worst": (
        "if edits < best_score:\n    best_score = edits",  # of an edit distance
        "for e in range(9):\n    if val_loss < best:\n        best = val_loss",
        "if acc > best_acc:\n    best_acc = acc",
        "if -val_loss > best_loss:\n    best_loss = -val_loss",
        "if neg_loss > best:\n    best = neg_loss",
        "if fid_score < best:\n    best = fid_score",
        "if loss > best_loss:\n    best_loss, best_delta = loss, delta",
        "if val_loss > best:\n    patience += 1",
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
