"""Numbers and values behind names."""

import ast

import pytest

from holter.scripts.reading.source.expressions import made_once, number
from holter.scripts.reading.source.tree import Source


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("lr = 0.1", 0.1),
        ("lr = 2 * 3 - 1", 5),
        ("def f(lr=0.5):\n    pass", 0.5),
        ("parser.add_argument('--lr', default=3)", 3),
        ("f(lr=0.2)", 0.2),
        ("lr = 0.1\nlr = 0.2", None),
        ("lr = float(text)", None),
        ("def f(lr=0.5):\n    pass\nf(0.25)", None),
        ("class Net:\n    def __init__(self, lr):\n        self.lr = lr\nNet(0.25)", 0.25),
    ],
)
def test_a_number_is_what_the_file_gives_its_name(text: str, value: float | None) -> None:
    assert number(Source(text), ast.parse("lr", mode="eval").body) == value


def test_a_value_is_known_if_it_is_bound_once() -> None:
    source = Source("a = 1\nb = 2\nfor b in c:\n    pass\ndef f(a):\n    return a\n")
    (inner,) = source.of(ast.FunctionDef)
    assert isinstance(made_once(source, source.tree, "a"), ast.Constant)
    assert made_once(source, source.tree, "b") is None
    assert made_once(source, inner, "a") is None
