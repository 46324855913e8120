"""Weights of a file that are not loaded."""

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


@pytest.mark.parametrize(
    ("use", "is_wrong"),
    [
        ("print(len(state))", True),
        ("pass", True),
        ("print(f'{len(state)} tensors')", True),
        ("model.load_state_dict(state)", False),
        ("restore(model, state)", False),
        ("epoch = state['epoch']", False),
    ],
)
def test_weights_of_files_are_loaded(use: str, is_wrong: bool) -> None:
    text = f"state = torch.load('teacher_ckpt.pt')\n{use}\n"
    assert ("unused weights of file" in kinds(text)) == is_wrong
