"""Readers of variational, and twins without a pattern."""

from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    """The kinds of patterns in a source."""
    return {pattern.kind for pattern in read(dedent(text))}


def module(init: str, forward: str) -> str:
    """A module with one layer and this forward pass."""
    return (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        {init}\n    def forward(self, x):\n{indent(dedent(forward), ' ' * 8)}\n"
    )


FOUND = {
    "uniform noise": (
        module("pass", "return mu + torch.rand_like(std) * std"),
        module("pass", "eps = torch.rand_like(std)\nreturn mu + eps * std"),
        module("pass", "return sigma * torch.rand(4) + mean"),
    ),
}
NOT_FOUND = {
    "uniform noise": (
        module("pass", "return mu + torch.randn_like(std) * std"),
        module("pass", "eps = torch.rand_like(std)\neps = normal(eps)\nreturn mu + eps * std"),
        module("pass", "return accumulated + torch.rand(4) * std"),
        "mean = 3.0\nstd = 1.0\nx = mean + std * torch.rand(100, 4)",
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
