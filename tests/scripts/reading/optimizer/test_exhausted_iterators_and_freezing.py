"""Readers of exhausted iterators, freezing, and twins without a pattern."""

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
    "ineffective freeze": [
        net("self.backbone = nn.Linear(8, 8)") + "net.backbone.requires_grad = False\n",
        "head = nn.Linear(3, 3)\nhead.requires_grad = False\n",
        "for layer in model.backbone.children():\n    layer.requires_grad = False\n",
        net("self.layers = nn.ModuleList(layers)") + "net.layers[0].requires_grad = False\n",
    ],
}
CLEAN = {
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
