"""Readers of targets inside of their windows, and twins without a pattern."""

from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read


def function(body: str, arguments: str = "s, n, h") -> str:
    """A function that is used."""
    return f"def f({arguments}):\n{indent(dedent(body), '    ')}\nf(*given)\n"


def data_set(body: str, init: str = "self.s = s\nself.n = n") -> str:
    """A data set that returns this of a place `i`."""
    return (
        f"class Data:\n    def __init__(self, s, n, x, y):\n{indent(dedent(init), ' ' * 8)}\n"
        f"    def __getitem__(self, i):\n{indent(dedent(body), ' ' * 8)}\n"
    )


def collected(x: str, y: str) -> str:
    """Lists of inputs and targets."""
    return function(
        f"xs, ys = [], []\nfor i in range(9):\n    xs.append({x})\n    ys.append({y})\n"
        "return torch.stack(xs), torch.stack(ys)\n"
    )


FOUND = {
    "target inside": (
        collected("s[i : i + n]", "s[i + n - 1]"),
        data_set("return self.s[i : i + 24], self.s[i + 24 - 6 : i + 24]"),
        "x, y = [], []\nfor i in range(9):\n    x.append(s[i : i + n])\n    y.append(s[i])\n",
        function("end = i + n\nseq = s[i:end]\nlabel = s[end - 1]\nreturn seq, label\n", "s, i, n"),
    ),
}  # fmt: skip
HEALTHY = {
    "target inside": (
        collected("s[i : i + n]", "s[i + n]"),
        collected("s[i : i + n]", "s[i + n + h - 1]"),
        collected("s[i : i + n, 1:]", "s[i + n - 1, 0]"),
        collected("s[i + 1 : i + n]", "s[i]"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_mistakes_are_found(kind: str, text: str) -> None:
    assert kind in {pattern.kind for pattern in read(text)}, text


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in HEALTHY.items() for text in texts]
)
def test_what_is_meant_so_is_not(kind: str, text: str) -> None:
    assert kind not in {pattern.kind for pattern in read(text)}, text
