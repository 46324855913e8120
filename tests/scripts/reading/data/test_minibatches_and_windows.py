"""Readers of minibatches, windows, random draws, and twins without a pattern."""

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


CLASSES = "loss = F.cross_entropy(model(a), b)\n"
MIX = "xm = lam * x + (1 - lam) * x[p]\no = model(xm)\n"
DRAWS = "noise = torch.randn_like(x)\nxt = mix(x, {}, t)\nreturn F.mse_loss(model(xt, t), noise)\n"
LOOP = "for epoch in range(9):\n    for x, y in {}:\n        step(x, y)\n"
FOUND = {
    "target is input": (
        collected("s[i : i + n]", "s[i : i + n]"),
        data_set("x = self.s[i : i + self.n]\ny = self.s[i : i + self.n]\nreturn x, y") + CLASSES,
        function("x = s[:, :-1]\ny = s[:, :-1]\nreturn x, y\n"),
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
}  # fmt: skip
HEALTHY = {
    "target is input": (
        collected("s[i : i + n]", "s[i + 1 : i + n + 1]") + CLASSES,
        collected("s[i : i + n]", "s[i : i + n]") + "loss = mse(autoencoder(a), a)\n",
        collected("s[i : i + n]", "s[i : i + n]") + "loss = ce(out[:, :-1], y[:, 1:])\n",
        collected("s[i : i + n]", "labels[i : i + n]"),
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
