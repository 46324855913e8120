"""Unknown labels that become a class."""

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


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
