"""Readers of attention axes, channel axes, class axes, and twins without a pattern."""

import ast
from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read


def module(*, forward: str = "return self.last(x)", init: str = "", method: str = "") -> str:
    """A model that is built."""
    return (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + indent(dedent(init) + "\n", " " * 8)
        + "    def forward(self, x):\n"
        + indent(dedent(forward) + "\n", " " * 8)
        + indent(dedent(method), "    ")
        + "\nmodel = Net()\n"
    )


def function(body: str, arguments: str = "x, y") -> str:
    """A function that is used."""
    return f"def f({arguments}):\n{indent(dedent(body), '    ')}\nf(a, b)\n"


ATTENTION = (
    "scores = self.score(h).squeeze(-1)\nw = torch.softmax(scores, dim={})\n"
    "return (w.unsqueeze(-1) * h).sum({})"
)
PRODUCT = "w = torch.softmax(q @ k.transpose(1, 2), dim={})\n"
HEADS = "B, T, C = x.shape\nq = self.query(x)\nreturn q.{}"
SPLIT = module(init="self.query = nn.Linear(4, 4)", forward=HEADS)
CLASSES = module(init="self.last = nn.{}") + "loss = F.cross_entropy(model(x).{}, y)\n"
FOUND = {
    "softmax over another axis": (
        module(forward="h = self.body(x)\n" + ATTENTION.format(0, 1)),
        function("w = logits.softmax(0)\nreturn (w[:, :, None] * h).sum(1)"),
        function("w = F.softmax(self.score(h), dim=0)\nreturn torch.sum(w * h, dim=1)"),
    ),
    "softmax over the batch": (
        function("probs = F.softmax(model(x), dim=0)\nbest, place = probs.max(1)"),
        function("probs = model(x).softmax(0)\nreturn probs.topk(5, dim=1)"),
    ),
    "softmax over queries": (
        function(PRODUCT.format(1) + "return w @ v"),
        function("s = torch.bmm(q, k)\nw = s.softmax(dim=1)\nreturn torch.bmm(w, v)"),
    ),
    "reshaped axes": (
        SPLIT.replace("{}", "view(B, self.heads, T, C // self.heads)"),
        SPLIT.replace("{}", "reshape(T, B, C)"),
        function("return x.view(x.shape[1], x.shape[0], -1)"),
    ),
    "reshaped classes": (
        CLASSES.format("Conv2d(3, 9, 1)", "view(-1, 9)"),
        CLASSES.format("Linear(3, 9)", "view(b, 9, -1)"),
    ),
}
NOT_FOUND = {
    "softmax over another axis": (
        module(forward="h = self.body(x)\n" + ATTENTION.format(1, 1)),
        function("w = torch.softmax(mixture, 0)\nreturn (w * torch.sigmoid(x)).sum(1)"),
        function("p = logits.softmax(1)\nreturn (p * y).sum(0)"),  # an overlap by class
        function("a = self.slots(h).softmax(1)\na = a / a.sum(2)\nreturn (a * h).sum(2)"),
    ),
    "softmax over the batch": (
        function("probs = F.softmax(model(x), dim=1)\nbest, place = probs.max(1)"),
        function("probs = F.softmax(model(x)[0], dim=0)\nreturn probs.argmax(-1)"),
    ),
    "softmax over queries": (
        function(PRODUCT.format(2) + "return w @ v"),
        function(PRODUCT.format(1) + "w = w / w.sum(2, keepdim=True)\nreturn w @ v"),
    ),
    "reshaped axes": (
        SPLIT.replace("{}", "view(B, T, self.heads, C // self.heads).transpose(1, 2)"),
        SPLIT.replace("{}", "transpose(0, 1).reshape(T, B, C)"),
        SPLIT.replace("{}", "reshape(B * T, C)"),
    ),
    "reshaped classes": (
        CLASSES.replace("loss", "z = model(x).permute(0, 2, 3, 1)\nloss")
        .replace("model(x).{}", "z.reshape(-1, 9)")
        .format("Conv2d(3, 9, 1)"),
        CLASSES.format("Conv2d(3, 9, 1)", "permute(0, 2, 3, 1).reshape(-1, 9)"),
        CLASSES.format("Linear(3, 9)", "view(-1, 9)"),
        CLASSES.format("Linear(3, 9 * 4)", "view(b, 9, -1)"),
    ),
}


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_a_mistake_is_found(kind: str, text: str) -> None:
    assert kinds(text) == {kind}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in NOT_FOUND.items() for text in texts]
)
def test_ordinary_code_is_none(kind: str, text: str) -> None:
    ast.parse(text)
    assert kind not in kinds(text)


def test_each_pattern_has_twins() -> None:
    assert FOUND.keys() == NOT_FOUND.keys()
    assert all(len(texts) >= 2 for texts in (*FOUND.values(), *NOT_FOUND.values()))
