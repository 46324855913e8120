"""Scores of figures with different directions."""

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


SELECTED = """
for epoch in range(9):
    mae, acc = evaluate(model)
    score = {}
    if {}:
        best = score
        torch.save(model.state_dict(), "best.pt")
"""


@pytest.mark.parametrize(
    ("score", "test", "is_wrong"),
    [
        ("mae + acc", "score < best", True),
        ("val_loss + f1", "score > best", True),
        ("0.5 * m['loss'] + 0.5 * m['accuracy']", "best > score", True),
        ("mae / scale + acc", "score < best", True),
        ("mae - (1 - acc)", "score < best", True),
        ("mae + (1 - acc)", "score < best", False),
        ("acc - mae", "score > best", False),
        ("mae + rmse", "score < best", False),
        ("iou + f1", "score > best", False),
    ],
)
def test_scores_have_one_direction(score: str, test: str, is_wrong: bool) -> None:
    assert ("mixed score" in kinds(SELECTED.format(score, test))) == is_wrong


def test_figures_are_followed_into_what_returns_them() -> None:
    text = """
def evaluate(model):
    return err / n, g_ok / n
a, g = evaluate(model)
score = a + {}
if score < best:
    best = score
"""
    assert "mixed score" in kinds(text.format("g"))
    assert "mixed score" not in kinds(text.format("(1 - g)"))
