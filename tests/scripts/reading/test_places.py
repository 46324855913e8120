"""Readers of windows, rows, indices, masks and draws, and twins without a pattern."""

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


GRU2 = "self.rnn = nn.GRU(4, 8, {}batch_first=True)\nself.head = nn.Linear(8, 2)\n"
CLASSES = "loss = F.cross_entropy(model(a), b)\n"
ENCODER = "layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)\n"
PLACES = "self.pe = nn.Parameter(torch.zeros(99, 8))\n"
TABLES = "self.tables = nn.ModuleList([nn.Embedding(9, 4) for _ in range(3)])\n"
MIX = "xm = lam * x + (1 - lam) * x[p]\no = model(xm)\n"
DRAWS = "noise = torch.randn_like(x)\nxt = mix(x, {}, t)\nreturn F.mse_loss(model(xt, t), noise)\n"
LOOP = "for epoch in range(9):\n    for x, y in {}:\n        step(x, y)\n"
CAUSAL = "mask = {}\nattn = scores.masked_fill(mask, -1e9).softmax(-1)\n"
RNN_FIRST = "self.rnn = nn.LSTM(4, 8{})\nself.head = nn.Linear(8, 2)\n"
LOADER = "loader = DataLoader(data, batch_size=32, shuffle=True)\n"
READ = "out, _ = self.rnn(x)\nreturn self.head(out.mean(1))"

FOUND = {
    "target is input": (
        collected("s[i : i + n]", "s[i : i + n]"),
        data_set("x = self.s[i : i + self.n]\ny = self.s[i : i + self.n]\nreturn x, y") + CLASSES,
        function("x = s[:, :-1]\ny = s[:, :-1]\nreturn x, y\n"),
    ),
    "target inside": (
        collected("s[i : i + n]", "s[i + n - 1]"),
        data_set("return self.s[i : i + 24], self.s[i + 24 - 6 : i + 24]"),
        "x, y = [], []\nfor i in range(9):\n    x.append(s[i : i + n])\n    y.append(s[i])\n",
        function("end = i + n\nseq = s[i:end]\nlabel = s[end - 1]\nreturn seq, label\n", "s, i, n"),
    ),
    "skipped target": (
        collected("s[i : i + n]", "s[i + 2 : i + n + 2]") + CLASSES,
        data_set("x = self.s[i : i + 9]\ny = self.s[i + 2 : i + 11]\nreturn x, y") + CLASSES,
    ),
    "future scale": (
        function(
            "whole = s[t : t + n + h]\nm = whole.mean()\nx = s[t : t + n] - m\n"
            "y = s[t + n : t + n + h] - m\nreturn x, y\n",
            "s, t, n, h",
        ),
        function(
            "scale = np.std(s[t : t + n + h]) + 1e-6\nwindow = s[t : t + n] / scale\n"
            "return window\n",
            "s, t, n, h",
        ),
    ),
    "unshifted input": (
        function("logits = decoder(tgt[:, 1:], h)\nreturn F.cross_entropy(logits, tgt[:, 1:])\n"),
        function(
            "target = tgt[:, 1:]\nout = model(src, target)\n"
            "return criterion(out.flatten(0, 1), target.reshape(-1))\n",
            "src, tgt",
        ),
    ),
    "overlapping batches": (
        "for i in range(len(x) // size):\n    step(x[i : i + size])\n",
        "turns = math.ceil(n / 32)\nfor b in range(turns):\n    idx = order[b : b + 32]\n",
    ),
    "same rows": (
        "for i in range(0, n, size):\n    idx = order[:size]\n    step(x[idx])\n",
        "for _ in tqdm(range(len(x) // 64)):\n    step(x[0:64], y[0:64])\n",
    ),
    "consumed in the first epoch": (
        "batches = zip(xs, ys)\n" + LOOP.format("batches"),
        "def make():\n    for i in range(9):\n        yield x[i], y[i]\nrows = make()\n"
        + LOOP.format("tqdm(rows)"),
        "it = iter(loader)\nwhile epoch < 9:\n    for x in it:\n        step(x)\n    epoch += 1\n",
    ),
    "mask as index": (
        "loss = F.cross_entropy(out[train_mask.long()], y[train_mask.long()])\n",
        "keep = data.val_mask.int()\nscore = out[keep]\n",
        "loss = F.mse_loss(out[mask.long()], y[mask.long()])\n",
    ),
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
    "zero before softmax": (
        "a = scores.masked_fill(mask, 0).softmax(-1)\n",
        function("s = q @ k.mT\ns = s.masked_fill(pad, 0.0)\nreturn F.softmax(s, -1)\n", "q, k"),
        "a = torch.softmax(scores * mask, dim=-1)\n",
        "a = F.softmax(torch.where(keep, scores, torch.zeros_like(scores)), 1)\n",
    ),
    "zero before minimum": (
        "hard = distances.masked_fill(same, 0).min(1)\n",
        "dist = torch.cdist(a, b)\nhard = (dist * negative_mask).min(dim=1)\n",
    ),
    "off diagonal": (
        CAUSAL.format("torch.ones(T, T).tril(1) == 0"),
        CAUSAL.format("torch.triu(torch.ones(T, T), diagonal=2).bool()"),
        "ones = torch.ones(T, T)\n" + CAUSAL.format("ones.triu(2).bool()"),
    ),
    "to itself": (
        "out = out.index_add(0, dst, h[dst])\n",
        "m = h[row]\nout.scatter_add_(0, row[:, None].expand_as(m), m)\n",
        "out = scatter(h[dst], dst, dim=0)\n",
        "out = torch.zeros_like(h).index_add(1, dst, h[:, dst])\n",
    ),
    "fresh noise": (
        function(DRAWS.format("torch.randn_like(x)"), "x, t"),
        function(
            "noise = torch.randn_like(x)\nxt = a * x + b * torch.randn_like(x)\n"
            "return ((model(xt) - noise) ** 2).mean()\n",
            "x, a, b",
        ),
    ),
    "weighed otherwise": (
        function(MIX + "return (1 - lam) * ce(o, y) + lam * ce(o, y[p])\n", "x, y, p, lam"),
        function(MIX + "y2 = y[p]\nreturn lam * ce(o, y2) + (1 - lam) * ce(o, y)\n", "x, y, p"),
        function(MIX + "return ce(o, lam * y[p] + (1 - lam) * y)\n", "x, y, p, lam"),
    ),
    "apart in item": (
        data_set(
            "return self.x[self.order[i]], self.y[i]",
            "self.x = x\nself.y = y\nself.order = torch.randperm(len(x))",
        ),
        data_set(
            "j = self.perm[i]\nreturn self.x[i].float(), self.y[j]",
            "self.x, self.y = None, None\nself.x = x\nself.y = y\n"
            "self.perm = np.random.permutation(len(x))",
        ),
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
    "target is input": (
        collected("s[i : i + n]", "s[i + 1 : i + n + 1]") + CLASSES,
        collected("s[i : i + n]", "s[i : i + n]") + "loss = mse(autoencoder(a), a)\n",
        collected("s[i : i + n]", "s[i : i + n]") + "loss = ce(out[:, :-1], y[:, 1:])\n",
        collected("s[i : i + n]", "labels[i : i + n]"),
    ),
    "target inside": (
        collected("s[i : i + n]", "s[i + n]"),
        collected("s[i : i + n]", "s[i + n + h - 1]"),
        collected("s[i : i + n, 1:]", "s[i + n - 1, 0]"),
        collected("s[i + 1 : i + n]", "s[i]"),
    ),
    "skipped target": (
        collected("s[i : i + n]", "s[i + 2 : i + n + 2]"),
        collected("s[i : i + n]", "(s[i + 1 : i + n + 1], s[i + 2 : i + n + 2])") + CLASSES,
    ),
    "future scale": (
        function("m = s[t : t + n].mean()\nx = s[t : t + n] - m\nreturn x\n", "s, t, n, h"),
        function("m = s.mean()\nx = s[t : t + n] - m\nreturn x\n", "s, t, n, h"),
    ),
    "unshifted input": (
        function("logits = decoder(tgt[:, :-1], h)\nreturn F.cross_entropy(logits, tgt[:, 1:])\n"),
        function("out = autoencoder(x[:, 1:])\nreturn mse_loss(out, x[:, 1:])\n", "x"),
    ),
    "overlapping batches": (
        "for i in range(0, len(x), size):\n    step(x[i : i + size])\n",
        "for i in range(len(s) - size):\n    step(s[i : i + size])\n",
        "for i in range(len(x) // size):\n    i = i * size\n    step(x[i : i + size])\n",
    ),
    "same rows": (
        "for i in range(0, n, size):\n    step(x[order[i : i + size]])\n",
        "for i in range(0, n, size):\n    rng.shuffle(order)\n    step(x[order[:size]])\n",
        "for i in range(0, n, size):\n    step(queue[:size])\n    del queue[:size]\n",
        "for i in range(0, n, b):\n    step(self.rows[:b])\n    self.rows = self.rows[b:]\n",
    ),
    "consumed in the first epoch": (
        "for epoch in range(9):\n    for x, y in zip(xs, ys):\n        step(x, y)\n",
        "batches = list(zip(xs, ys))\n" + LOOP.format("batches"),
        "def make():\n    while True:\n        yield x, y\nrows = make()\n" + LOOP.format("rows"),
        "rows = iter(data)\nfor e in range(9):\n    for x in rows:\n        break\n",
    ),
    "mask as index": (
        "loss = F.cross_entropy(out[train_mask], y[train_mask])\n",
        "color = table[mask.long()]\n",
        "embedded = self.types[segment_mask.long()]\n",
    ),
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
    "zero before softmax": (
        "a = scores.masked_fill(mask, -1e9).softmax(-1)\n",
        "a = scores.softmax(-1).masked_fill(mask, 0)\n",
        function("a = (s * mask).softmax(-1) * mask\nreturn a / a.sum(-1, True)\n", "s, mask"),
        "s = s.masked_fill(mask, 0)\ns = s + bias\na = s.softmax(-1)\n",
    ),
    "zero before minimum": (
        "hard = distances.masked_fill(same, float('inf')).min(1)\n",
        "worst = log_probabilities.masked_fill(pad, 0).min(1)\n",
        "least = distances.masked_fill(same, 0).min()\n",
    ),
    "off diagonal": (
        CAUSAL.format("torch.ones(T, T).tril() == 0"),
        CAUSAL.format("torch.ones(T, T).triu(1).bool()"),
        CAUSAL.format("torch.ones(T, T + 1).tril(1) == 0"),
        "band = torch.ones(T, T).tril(1) * torch.ones(T, T).triu(-1)\na = s.softmax(-1)\n",
        "pairs = torch.ones(T, T).triu(2)\n",
    ),
    "to itself": (
        "out = out.index_add(0, dst, h[src])\n",
        "out = scatter(h[src] * w[dst], dst, dim=0)\n",
        "pooled = torch.zeros(9, 4).index_add(0, batch, h[order])\n",
    ),
    "fresh noise": (
        function(DRAWS.format("noise"), "x, t"),
        function(
            "z = mu + s * torch.randn_like(s)\np = torch.randn_like(z)\nreturn mmd_loss(z, p)\n",
            "mu, s",
        ),
        function("noise = torch.randn_like(x)\nreturn F.mse_loss(model(x), noise)\n", "x"),
    ),
    "weighed otherwise": (
        function(MIX + "return lam * ce(o, y) + (1 - lam) * ce(o, y[p])\n", "x, y, p, lam"),
        function(MIX + "return (1 - lam) * ce(o, y[p]) + lam * ce(o, y)\n", "x, y, p, lam"),
        function("a = w * x + (1 - w) * x[p]\nb = w * x[p] + (1 - w) * x\nreturn a, b\n", "x, p"),
    ),
    "apart in item": (
        data_set(
            "return self.x[self.order[i]], self.y[self.order[i]]",
            "self.x = x\nself.y = y\nself.order = torch.randperm(len(x))",
        ),
        data_set("return self.x[self.ids[i]], self.y[i]", "self.x = x\nself.y = y\nself.ids = n"),
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
