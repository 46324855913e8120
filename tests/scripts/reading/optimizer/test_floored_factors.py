"""Factors of a warm-up that are rounded down."""

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


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
