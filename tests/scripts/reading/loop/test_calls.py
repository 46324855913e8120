"""Readers of calls, and twins without a pattern."""

import pytest

from holter.scripts.reading import read

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
