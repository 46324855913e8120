"""Readers of registration, recurrent states, and twins without a pattern."""

import pytest

from holter.scripts.reading import read

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
}
CLEAN = {
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
