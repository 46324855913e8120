"""Readers of batch first, attention axes, and twins without a pattern."""

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


RNN, GIVEN = "self.rnn = nn.LSTM(4, 8)", "self.rnn = nn.LSTM(4, 8, batch_first=True)"
LAST = "out, _ = self.rnn(x)\nreturn self.head(out[:, -1])"
FOUND = {
    "batch as time": (
        module(RNN, LAST),
        module("self.rnn = nn.GRU(4, 8, num_layers=2)", "o, h = self.rnn(x)\nreturn o[:, -1, :]"),
        module("self.rnn = torch.nn.RNN(4, 8)", "o, h = self.rnn(x)\nz = o[:, -1]\nreturn z"),
    ),
    "softmax over queries": (
        "attn = scores.softmax(dim=-2)\nout = attn @ v",
        "def f(q, k, v):\n    att = F.softmax(q @ k.mT, dim=-2)\n    return drop(att) @ v\nf()",
        "attn_weights = torch.softmax(scores, dim=-2)\nout = torch.matmul(attn_weights, v)",
    ),
}
NOT_FOUND = {
    "batch as time": (
        module(GIVEN, LAST),
        module("self.rnn = nn.LSTM(4, 8, 1, True, True)", LAST),
        module(RNN, "out, _ = self.rnn(x.swapaxes(0, 1))\nreturn out[-1]"),
        module(RNN, "out, _ = self.rnn(x.T)\nout = out.movedim(0, 1)\nreturn out[:, -1]"),
        module(RNN, "out, _ = self.rnn(x)\nreturn self.head(out[-1])"),
        module("self.rnn = nn.LSTM(4, 8, **options)", LAST),
    ),
    "softmax over queries": (
        "attn = scores.softmax(dim=-1)\nout = attn @ v",
        "attn = self.score(h).softmax(dim=-2)\nout = (attn * h).sum(1)",
        "attn = scores.softmax(dim=-2)\nattn = attn / attn.sum(-1, keepdim=True)\nout = attn @ v",
        "keys = keys.softmax(dim=-2)\nout = keys.mT @ v",
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
