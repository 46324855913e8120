"""Scores of two directions, exchanged transforms, clamped labels and whole factors in sources."""

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


@pytest.mark.parametrize(
    ("loss", "is_wrong"),
    [
        ("F.cross_entropy(out, y.clamp(min=0))", True),
        ("F.cross_entropy(out, torch.clamp(y, min=0))", True),
        ("F.cross_entropy(out, y.clamp_min(0))", True),
        ("criterion(out, y.clamp(0).long())", True),
        ("F.cross_entropy(out, y, ignore_index=-1)", False),
        ("F.cross_entropy(out, y.clamp(min=0), reduction='none')[y >= 0].mean()", False),
        ("F.cross_entropy(out, y.clamp(0, 9))", False),
        ("F.cross_entropy(out[known], y.clamp(min=0)[known])", False),
    ],
)
def test_unknown_labels_are_no_class(loss: str, is_wrong: bool) -> None:
    text = f"criterion = nn.CrossEntropyLoss()\nknown = y >= 0\nloss = {loss}\n"
    assert ("clamped labels" in kinds(text)) == is_wrong


@pytest.mark.parametrize(
    "text",
    [
        "def f(s):\n    if s < warm:\n        return {}\n    return 1.0\nLambdaLR(opt, f)",
        "LambdaLR(opt, lambda s: {} if s < warm else 1.0)",
        "def f(s):\n    return {} if s < warm else 1.0\nLambdaLR(opt, lr_lambda=f)",
    ],
)
def test_factors_of_a_warm_up_are_no_whole_numbers(text: str) -> None:
    assert kinds(text.format("(s + 1) // warm")) == {"rounded share"}
    assert kinds(text.format("int(s / warm)")) == {"rounded share"}
    assert not kinds(text.format("(s + 1) / warm"))
    assert not kinds(text.format("0.1 ** (s // step)"))
