"""The slice of a piece of source: what a value depends on, and nothing else."""

import ast
from textwrap import indent

import pytest

from holter.scripts.recognition.slicing import exposed, slice_for


def kept(source: str) -> str:
    """The slice for `loss` of the body of a loop."""
    (loop,) = ast.parse("while 1:\n" + indent(source, "    ")).body
    assert isinstance(loop, ast.While)
    statements, _ = slice_for(loop.body, {"loss"}, lambda _: True)
    return "\n".join(ast.unparse(each) for each in statements)


@pytest.mark.parametrize(
    ("source", "slice_of_it"),
    [
        ("total += 1\nloss = f(x)\nprint(loss)", "loss = f(x)"),
        ("a = 1\na = 2\nloss = a", "a = 2\nloss = a"),
        ("a = 1\nif c:\n    a = 2\nloss = a", "a = 1\nif c:\n    a = 2\nloss = a"),
        ("x = 1\nself.loss = x\nloss = self.loss", "x = 1\nself.loss = x\nloss = self.loss"),
        (
            "b = []\nc = []\nb.append(1)\nc.append(2)\nloss = sum(b)",
            "b = []\nb.append(1)\nloss = sum(b)",
        ),
        (
            "s = 0\nfor a in xs:\n    s += a\n    print(a)\n    if a:\n        break\nloss = s",
            "s = 0\nfor a in xs:\n    s += a\n    if a:\n        break\nloss = s",
        ),
        ("if bad(x):\n    continue\nloss = x", "loss = x"),
        (
            "with cast():\n    print(1)\n    loss = f(x)\nlog(loss)",
            "with cast():\n    loss = f(x)",
        ),
        ("(y := f(x))\nloss = y", "(y := f(x))\nloss = y"),
        (
            "for _ in r:\n    h = g(o)\n    o = f(h)\nloss = h",
            "for _ in r:\n    h = g(o)\n    o = f(h)\nloss = h",
        ),
    ],
)
def test_slices(source: str, slice_of_it: str) -> None:
    assert kept(source) == slice_of_it


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("a = b + c.d", {"b", "c.d"}),
        ("a = 1\nb = a", set()),
        ("b = [i for i in xs if i > low]", {"xs", "low"}),
        ("x[m] = y", {"x", "m", "y"}),
        ("x += y", {"x", "y"}),
        ("for i in r:\n    h = f(h, i)", {"r", "f", "h"}),
        ("with c() as d:\n    e = d", {"c"}),
        ("a = self.net(x)", {"self", "x"}),
        ("g = lambda v: v + w", {"w"}),
    ],
)
def test_what_is_read_before_it_is_written(source: str, names: set[str]) -> None:
    assert exposed(ast.parse(source).body) == names
