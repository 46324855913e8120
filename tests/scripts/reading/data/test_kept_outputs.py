"""Outputs that are kept of a shuffled loader, and constants of bytes."""

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


KEPT = """
def loaders():
    return DataLoader(data, 64{}), DataLoader(held, 64)
def distill(teacher, student):
    train_dl, val_dl = loaders()
    with torch.no_grad():
        kept = [teacher(x) for x, _ in train_dl]
    for epoch in range(9):
        {}
        loss.backward()
distill(a, b)
"""


@pytest.mark.parametrize(
    "loop",
    [
        "for t, (x, y) in zip(kept, train_dl): loss = kd(student(x), t)",
        "for i, (x, y) in enumerate(train_dl): loss = kd(student(x), kept[i])",
        "for i, (t, (x, y)) in enumerate(zip(kept, train_dl)): loss = kd(student(x), t)",
    ],
)
def test_kept_outputs_of_a_shuffled_loader(loop: str) -> None:
    assert "cache by number" in kinds(KEPT.format(", shuffle=True", loop))
    assert "cache by number" not in kinds(KEPT.format("", loop))
    assert "cache by number" not in kinds(KEPT.format(", shuffle=False", loop))


@pytest.mark.parametrize("means", ["(129.3, 124.1, 112.4)", "[123.675, 116.28, 103.53]", "MEAN"])
def test_constants_of_bytes(means: str) -> None:
    text = "MEAN = (129.3, 124.1, 112.4)\ntf = T.Compose([{}, T.Normalize({}, (68.2, 65.4, 70.4))])"
    assert "constants of bytes" in kinds(text.format("T.ToTensor()", means))
    assert not kinds(text.format("T.PILToTensor()", means))
    assert not kinds(text.format("T.ToTensor()", "(0.5, 0.4, 0.4)"))
    assert not kinds(text.format("T.ToTensor()", "(0, 0, 0)"))
    assert not kinds(text.format("T.ToTensor(), T.Lambda(lambda x: x * 255)", means))
