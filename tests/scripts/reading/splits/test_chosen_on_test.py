"""Weights that are chosen on test data."""

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


CHOSEN = """
val_loader, test_loader = loaders()
for epoch in range(9):
    {}
    if {}:
        best = acc
        torch.save(model.state_dict(), "best.pt")
"""


@pytest.mark.parametrize(
    ("figure", "test"),
    [
        ("acc = accuracy(model, test_loader)", "acc > best"),
        ("acc = evaluate(model, test_loader)['acc']", "best < acc"),
        ("acc = model.score(test_loader)", "acc >= best_acc"),
    ],
)
def test_weights_are_not_chosen_on_test(figure: str, test: str) -> None:
    assert "chosen on test" in kinds(CHOSEN.format(figure, test))
    assert "chosen on test" not in kinds(CHOSEN.format(figure.replace("test_", "val_"), test))
    none = CHOSEN.replace("val_loader, ", "").format(figure, test)
    assert "chosen on test" not in kinds(none)
