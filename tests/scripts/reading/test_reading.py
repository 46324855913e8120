"""What readers find in sources, and twins in which they find nothing."""

from collections.abc import Iterator

import pytest

from holter.scripts.reading import read, reader
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source

NET = """
class Net(nn.Module):
    def __init__(self, teacher=None):
        super().__init__()
        {}

    def forward(self, x, mask=None):
        return self.head(x)
"""


def net(*lines: str) -> str:
    """A module whose constructor has these lines."""
    return NET.format("\n        ".join(lines))


FOUND = {
    "uncalled": [
        "for x in data:\n    optimizer.zero_grad\n",
        "for x in data:\n    self.optimizer.step\n",
        "def evaluate(model):\n    model.eval\n    return model(x)\n\nevaluate(net)\n",
    ],
    "uncalled condition": [
        (
            "class Net(nn.Module):\n    def forward(self, x):\n        if self.train:\n"
            "            x = noise(x)\n        return x\n"
        ),
        (
            "class Net(nn.Module):\n    def forward(self, x):\n"
            "        return 1 if not self.train else 2\n"
        ),
        (
            "class Net(nn.Module):\n    def forward(self, x):\n"
            "        if self.p > 0 and self.train:\n            x = noise(x)\n        return x\n"
        ),
    ],
    "discarded": [
        "logits = model(x)\nlogits.clamp(-5, 5)\nloss = f(logits)\n",
        "x = model(x)\nF.relu(x)\n",
        "for t in range(9):\n    hidden.detach()\n",
        "scores.masked_fill(mask, -1e9)\n",
        "np.clip(images, 0, 1)\n",
    ],
    "dropped state": [
        "for t in range(n):\n    out, _ = cell(x[:, t], h)\n",
        "for t in range(n):\n    out, _ = lstm(x[t], (h, c))\n",
        "for _ in range(n):\n    out, _ = decoder(token, hidden)\n    token = out.argmax(-1)\n",
        (
            "class Net(nn.Module):\n    def forward(self, x):\n        h = self.start(x)\n"
            "        for i in range(len(x)):\n            out, _ = self.cell(x[i], h)\n"
            "        return out\n"
        ),
    ],
    "exhausted": [
        (
            "params = model.parameters()\noptimizer = SGD(params)\n"
            "for x in data:\n    clip_grad_norm_(params, 1.0)\n"
        ),
        (
            "params = filter(lambda p: p.requires_grad, model.parameters())\n"
            "n = sum(p.numel() for p in params)\noptimizer = SGD(params)\n"
        ),
        (
            "pairs = zip(net.parameters(), ema.parameters())\nfor x in data:\n"
            "    for p, q in pairs:\n        q.lerp_(p, 0.1)\n"
        ),
        (
            "params = model.parameters()\nfor p in params:\n    p.requires_grad = False\n"
            "optimizer = SGD(params)\n"
        ),
        (
            "params = model.parameters()\noptimizer = SGD(params)\n"
            "def clip():\n    clip_grad_norm_(params, 1.0)\nclip()\n"
        ),
    ],
    "unregistered": [
        net("self.layers = [nn.Linear(8, 8), nn.Linear(8, 8)]"),
        net("self.heads = {name: nn.Linear(8, 1) for name in names}"),
        net("self.layers = []", "for _ in range(3):", "    self.layers.append(nn.Conv2d(3, 3, 3))"),
        net("self.blocks = [Block(8) for _ in range(3)]")
        + "\nclass Block(nn.Module):\n    def __init__(self):\n        self.a = nn.Linear(2, 2)\n",
        net("self.scales = [nn.Parameter(torch.ones(1)) for _ in range(3)]"),
    ],
    "moved parameter": [
        net("self.w = nn.Parameter(torch.randn(3)).view(1, 3)"),
        net("self.w = nn.Parameter(torch.randn(3)).to(device).clone()"),
        net("self.w = torch.nn.Parameter(torch.randn(3)).to(dtype=torch.float64)"),
    ],
    "parameter to device": [
        net("self.w = nn.Parameter(torch.randn(3)).to(device)"),
        net("self.w = nn.Parameter(torch.randn(3)).cuda()"),
        net("self.w = torch.nn.Parameter(torch.randn(3)).to('cuda')"),
    ],
    "ineffective freeze": [
        net("self.backbone = nn.Linear(8, 8)") + "net.backbone.requires_grad = False\n",
        "head = nn.Linear(3, 3)\nhead.requires_grad = False\n",
        "for layer in model.backbone.children():\n    layer.requires_grad = False\n",
        net("self.layers = nn.ModuleList(layers)") + "net.layers[0].requires_grad = False\n",
    ],
    "inverted mask": [
        "a = scores.masked_fill(tokens != PAD, float('-inf')).softmax(-1)\n",
        (
            "keep = torch.arange(n)[None] < lengths[:, None]\n"
            "a = scores.masked_fill(keep, -float('inf')).softmax(-1)\n"
        ),
        "a = F.scaled_dot_product_attention(q, k, v, attn_mask=torch.triu(torch.ones(9, 9), 1))\n",
        net("self.attn = nn.MultiheadAttention(8, 2)") + "    def attend(self, x, tokens):\n"
        "        return self.attn(x, x, x, key_padding_mask=tokens != self.pad_idx)\n",
        (
            "def attention(scores, mask):\n"
            "    return scores.masked_fill(mask, -1e9).softmax(-1)\n\n"
            "mask = tokens != PAD\nout = attention(scores, mask)\n"
        ),
    ],
}

CLEAN = {
    "uncalled": [
        "for x in data:\n    optimizer.zero_grad()\n    optimizer.step()\n",
        "step = optimizer.step\n",
        "count.steps\nmodel.training\n",
    ],
    "uncalled condition": [
        (
            "class Net(nn.Module):\n    def forward(self, x):\n        if self.training:\n"
            "            x = noise(x)\n        return x\n"
        ),
        (
            "class Data(LightningDataModule):\n    def setup(self):\n        self.train = load()\n"
            "    def size(self):\n        return 1 if self.train else 0\n"
        ),
        (
            "class Net(nn.Module):\n    train: bool = False\n    def size(self):\n"
            "        return 1 if self.train else 0\n"
        ),
    ],
    "discarded": [
        "logits = logits.clamp(-5, 5)\n",
        "logits.clamp_(-5, 5)\nF.relu(x, True)\nF.relu(x, inplace=True)\n",
        "np.fill_diagonal(similarity, 0)\nnp.clip(x, 0, 1, out=x)\nnp.clip(x, 0, 1, x)\n",
        "import pygame\npygame.display.flip()\nscreen.flip()\n",
        "class Game:\n    def roll(self, n):\n        self.n = n\n\ngame.roll(3)\n",
        "observer = Observer(model)\nobserver.detach()\n",
        "with pytest.raises(RuntimeError):\n    x.reshape(7)\n",
        "# %%\nimages.permute(1, 2, 0)\n",
        "with torch.no_grad():\n    F.batch_norm(x, mean, var, training=True)\n",
    ],
    "dropped state": [
        "for t in range(n):\n    out, h = cell(x[:, t], h)\n",
        (
            "h = torch.zeros(1, 8, 16)\nfor x, y in loader:\n    x = x.cuda()\n"
            "    out, _ = rnn(x, h)\n"
        ),
        "for i in range(0, n, size):\n    out, _ = rnn(x[i : i + size], h)\n",
        "for i in range(9):\n    out, _ = rnn(batches[i], h)\n    out.mean().backward()\n",
        "for s in range(n):\n    out, _ = rnn(x[:, s], h0)\n",
        "state = Cache(model)\nfor t in range(n):\n    out, _ = model(x[:, t], state)\n",
    ],
    "exhausted": [
        "params = list(model.parameters())\noptimizer = SGD(params)\nclip_grad_norm_(params, 1)\n",
        "params = model.parameters()\nfor p in params:\n    p.requires_grad = False\n",
        (
            "def make(name, model):\n    params = model.parameters()\n    if name == 'sgd':\n"
            "        return SGD(params)\n    if name == 'adam':\n        return Adam(params)\n"
            "    return AdamW(params)\n\nmake(name, model)\n"
        ),
        (
            "params = model.parameters()\nif fast:\n    optimizer = SGD(params)\nelse:\n"
            "    optimizer = Adam(params)\n"
        ),
        (
            "params = model.parameters()\noptimizer = SGD(params)\n"
            "def count(params):\n    return sum(p.numel() for p in params)\n"
            "count(model.parameters())\n"
        ),
        (
            "class MLP:\n    def parameters(self):\n        return [self.w]\n\n"
            "params = mlp.parameters()\nfor x in data:\n    for p in params:\n"
            "        p.grad = None\n"
        ),
        "for model in models:\n    params = model.parameters()\n    optimizer = SGD(params)\n",
    ],
    "unregistered": [
        net("self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])"),
        net("self.activations = [nn.ReLU(), nn.ZeroPad2d(1), nn.Softsign()]"),
        net(
            "self.layers = [nn.Linear(8, 8) for _ in range(3)]",
            "self.net = nn.Sequential(*self.layers)",
        ),
        net(
            "self.heads = [nn.Linear(8, 8) for _ in range(3)]",
            "for i, head in enumerate(self.heads):",
            "    self.add_module(f'head{i}', head)",
        ),
        net("self.hidden = [nn.Linear(8, 8)]"),
        net("self.layers = [nn.Linear(8, 8), nn.Linear(8, 8)]")
        + "optimizer = SGD([p for layer in net.layers for p in layer.parameters()])\n",
        net("self.steps = [Jitter(), Crop()]")
        + "\nclass Jitter(nn.Module):\n    def forward(self, x):\n        return x + 1\n"
        "\nclass Crop(Jitter):\n    pass\n",
    ],
    "moved parameter": [
        net("self.w = nn.Parameter(torch.randn(3).view(1, 3))"),
        net("self.w = nn.Parameter(torch.randn(3)).to(device)"),
        net("self.w = nn.Parameter(torch.randn(3)).requires_grad_(False)"),
    ],
    "parameter to device": [
        net("self.w = nn.Parameter(torch.randn(3).to(device))"),
        net("self.w = nn.Parameter(torch.randn(3))"),
        net("self.net = nn.Linear(3, 3).to(device)"),
    ],
    "ineffective freeze": [
        net("self.backbone = nn.Linear(8, 8)") + "net.backbone.requires_grad_(False)\n",
        net("self.backbone = nn.Linear(8, 8)")
        + "net.backbone.requires_grad = False\n"
        + "for p in net.backbone.parameters():\n    p.requires_grad = False\n",
        net("self.backbone = nn.Linear(8, 8)", "self.head = nn.Linear(8, 2)")
        + "net.backbone.requires_grad = False\noptimizer = SGD(net.head.parameters())\n",
        net("self.scales = nn.ParameterList(scales)") + "net.scales[0].requires_grad = False\n",
        (
            "def a():\n    e = nn.Embedding(3, 3)\n    return e\n\n"
            "def b():\n    e = torch.randn(3)\n    e.requires_grad = mode\n"
            "    return e, a()\n\nb()\n"
        ),
        "for p in model.parameters():\n    p.requires_grad = False\n",
    ],
    "inverted mask": [
        "a = scores.masked_fill(tokens == PAD, float('-inf')).softmax(-1)\n",
        "a = scores.masked_fill(padding_mask != 0, -1e9).softmax(-1)\n",
        "a = scores.masked_fill(is_pad != 0, -1e9).softmax(-1)\n",
        (
            "def attention(scores, mask):\n"
            "    return scores.masked_fill(mask, -1e9).softmax(-1)\n\n"
            "mask = tokens != PAD\nout = attention(scores, ~mask)\n"
        ),
        (
            "class Attention(nn.Module):\n    def forward(self, x, mask):\n"
            "        return x.masked_fill(mask == 0, -1e9).softmax(-1)\n\n"
            "attention = Attention()\nout = attention(x, mask=torch.tril(torch.ones(9, 9)))\n"
        ),
        "best = scores.masked_fill(torch.tril(torch.ones(9, 9)).bool(), -1e9).max()\n",
        "a = F.scaled_dot_product_attention(q, k, v, attn_mask=torch.tril(torch.ones(9, 9)))\n",
        net("self.attn = nn.MultiheadAttention(8, 2)") + "    def attend(self, x, tokens):\n"
        "        return self.attn(x, x, x, key_padding_mask=tokens == self.pad_idx)\n",
    ],
}


def rows(table: dict[str, list[str]]) -> list[object]:
    return [
        pytest.param(kind, text, id=f"{kind}-{number}")
        for kind, texts in table.items()
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize(("kind", "text"), rows(FOUND))
def test_the_pattern_is_found(kind: str, text: str) -> None:
    assert [pattern.kind for pattern in read(text)] == [kind]


@pytest.mark.parametrize(("kind", "text"), rows(CLEAN))
def test_the_twin_is_clean(kind: str, text: str) -> None:
    compile(text, kind, "exec")
    assert [pattern.code for pattern in read(text) if pattern.kind == kind] == []


def test_a_reader_that_fails_loses_nothing_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(source: Source) -> Iterator[Pattern]:
        raise TypeError("a mistake of ours")

    text = "import torch\nfor x in loader:\n    loss(x).backward()\n    optimizer.step\n"
    expected = read(text)
    assert expected
    every = (reads(broken), *reader.readers())
    monkeypatch.setattr(reader, "readers", lambda: every)
    failures: list[Exception] = []
    assert read(text, failures=failures) == expected
    assert [str(each) for each in failures] == ["a mistake of ours"]
    with pytest.raises(TypeError):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x, y=1, /):\n    return x\nf(0)\n",
        "def f(*, y=[]):\n    y.append(1)\nf()\n",
        "x = x[()]\nfor i in range(9):\n    x = model(x[()])\n",
        "class A:\n    import push\n    def sample(self, n):\n        return list(self.x)[-n:]\n",
        "x[...] = x[:]\nlambda: 0\nprint(*a, **b)\n",
    ],
)
def test_unusual_syntax_breaks_no_reader(text: str) -> None:
    read(text)
