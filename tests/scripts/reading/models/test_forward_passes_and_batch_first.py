"""Readers of forward passes, batch first, graphs, and twins without a pattern."""

from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read


def module(init: str, forward: str, more: str = "", arguments: str = "x") -> str:
    """A module with this constructor, forward pass and other methods."""
    return (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"{indent(dedent(init), ' ' * 8)}\n    def forward(self, {arguments}):\n"
        f"{indent(dedent(forward), ' ' * 8)}\n{indent(dedent(more), '    ')}\n"
    )


GRU2 = "self.rnn = nn.GRU(4, 8, {}batch_first=True)\nself.head = nn.Linear(8, 2)\n"
ENCODER = "layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)\n"
PLACES = "self.pe = nn.Parameter(torch.zeros(99, 8))\n"
TABLES = "self.tables = nn.ModuleList([nn.Embedding(9, 4) for _ in range(3)])\n"
RNN_FIRST = "self.rnn = nn.LSTM(4, 8{})\nself.head = nn.Linear(8, 2)\n"
LOADER = "loader = DataLoader(data, batch_size=32, shuffle=True)\n"
READ = "out, _ = self.rnn(x)\nreturn self.head(out.mean(1))"
FOUND = {
    "layer in forward": (
        module("pass", "return nn.Linear(8, 4)(x)"),
        module("pass", "layer = nn.Conv2d(3, 3, 3)\nreturn layer(x)"),
        module("pass", "return self.encode(x)", "def encode(self, x):\n    return nn.GRU(4, 4)(x)"),
    ),
    "dropout in forward": (
        module("pass", "return nn.Dropout(0.5)(x)"),
        module("pass", "drop = torch.nn.Dropout2d(0.1)\nreturn drop(x)"),
    ),
    "first layer": (
        module(GRU2.format("num_layers=2, "), "_, h = self.rnn(x)\nreturn self.head(h[0])"),
        module(
            RNN_FIRST.format(", DEPTH"), "out, (h, c) = self.rnn(x)\nreturn self.head(h[0])"
        )
        + "DEPTH = 3\n",
    ),
    "first step": (
        module(GRU2.format(""), "out, _ = self.rnn(x)\nreturn self.head(out[:, 0])"),
        module(GRU2.format(""), "out, h = self.rnn(x)\ny = self.head(out[:, 0, :])\nreturn y"),
    ),
    "position of batch": (
        module(PLACES + ENCODER, "return x + self.pe[: x.size(0)]"),
        module(PLACES + ENCODER, "B, T, D = x.shape\nreturn x + self.pe[:B, :]"),
    ),
    "same column": (
        module(TABLES, "return torch.cat([t(x[:, 0]) for t in self.tables], 1)"),
        module(TABLES, "for i, t in enumerate(self.tables):\n    out.append(t(x[..., 1]))"),
    ),
    "to itself": (
        "out = out.index_add(0, dst, h[dst])\n",
        "m = h[row]\nout.scatter_add_(0, row[:, None].expand_as(m), m)\n",
        "out = scatter(h[dst], dst, dim=0)\n",
        "out = torch.zeros_like(h).index_add(1, dst, h[:, dst])\n",
    ),
    "batch as time": (
        module(RNN_FIRST.format(""), READ) + LOADER,
        module("self.rnn = nn.GRU(4, 8)", "_, h = self.rnn(x)\nreturn self.head(h)") + LOADER,
    ),
    "batch attended": (
        module("self.attn = nn.MultiheadAttention(8, 2)", "return self.attn(x, x, x)[0]") + LOADER,
        module(
            "layer = nn.TransformerEncoderLayer(8, 2)\nself.enc = nn.TransformerEncoder(layer, 2)",
            "return self.enc(self.embed(x)).mean(1)",
        )
        + LOADER,
    ),
}  # fmt: skip
HEALTHY = {
    "layer in forward": (
        module("self.layer = nn.Linear(8, 4)", "return self.layer(x)"),
        module("pass", "if not self.a:\n    self.a = nn.Linear(8, 4)\nreturn self.a(x)"),
        module("pass", "layer = nn.Linear(8, 4)\nlayer.weight = self.w\nreturn layer(x)"),
        module("pass", "return nn.Conv2d(3, 3, 3)(x)").replace("Net", "RandomConv"),
        module("pass", "return self.a(x)", "def build(self):\n    return nn.Linear(3, 3)(self.x)"),
    ),
    "dropout in forward": (
        module("pass", "return nn.Dropout(0.5)(x) if self.training else x"),
        module("self.drop = nn.Dropout(0.5)", "return self.drop(x)"),
    ),
    "first layer": (
        module(GRU2.format("num_layers=2, "), "_, h = self.rnn(x)\nreturn self.head(h[-1])"),
        module(GRU2.format(""), "_, h = self.rnn(x)\nreturn self.head(h[0])"),
        module(GRU2.format("2, bidirectional=True, "), "_, h = self.rnn(x)\nreturn h[0]"),
        module(GRU2.format("num_layers=2, "), "_, h = self.rnn(x)\nreturn f(h[0], h[1])"),
    ),
    "first step": (
        module(GRU2.format(""), "out, _ = self.rnn(x)\nreturn self.head(out[:, -1])"),
        module(GRU2.format(""), "out, _ = self.rnn(x.flip(1))\nreturn self.head(out[:, 0])"),
        module(RNN_FIRST.format(""), "out, _ = self.rnn(x)\nreturn self.head(out[:, 0])"),
    ),
    "position of batch": (
        module(PLACES + ENCODER, "return x + self.pe[: x.size(1)]"),
        module(PLACES + ENCODER.replace("True", "False"), "return x + self.pe[: x.size(0)]"),
        module(PLACES + ENCODER, "T = x.transpose(0, 1)\nreturn x + self.pe[: x.size(0)]"),
    ),
    "same column": (
        module(TABLES, "return torch.cat([t(x[:, i]) for i, t in enumerate(self.tables)], 1)"),
        module(TABLES.replace("Embedding", "Linear"), "return [t(x[:, 0]) for t in self.tables]"),
    ),
    "to itself": (
        "out = out.index_add(0, dst, h[src])\n",
        "out = scatter(h[src] * w[dst], dst, dim=0)\n",
        "pooled = torch.zeros(9, 4).index_add(0, batch, h[order])\n",
    ),
    "batch as time": (
        module(RNN_FIRST.format(", batch_first=True"), READ) + LOADER,
        module(RNN_FIRST.format(""), "out, _ = self.rnn(x.transpose(0, 1))\nreturn out") + LOADER,
        module(RNN_FIRST.format(""), "out, _ = self.rnn(x.unsqueeze(0))\nreturn out[0]") + LOADER,
        module(RNN_FIRST.format(""), READ) + LOADER.replace(")", ", collate_fn=join)"),
        module(
            RNN_FIRST.format(""),
            "packed = pack_padded_sequence(self.embed(x), n, batch_first=True)\n"
            "_, h = self.rnn(packed)\nreturn self.head(h[-1])",
        )
        + LOADER,
    ),
    "batch attended": (
        module("self.attn = nn.MultiheadAttention(8, 2)", "return self.attn(x, x, x)[0]"),
        module(
            "self.attn = nn.MultiheadAttention(8, 2, batch_first=True)",
            "return self.attn(x, x, x)[0]",
        )
        + LOADER,
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
