"""Borders of groups, counts, degrees, skip connections and codes of categories."""

import pytest

from holter.scripts.reading.data import categories
from holter.scripts.reading.losses import dice
from holter.scripts.reading.metrics import accuracy
from holter.scripts.reading.models import graphs, skip_connections
from holter.scripts.reading.splits import transforms
from tests.scripts.reading.found import kinds_by

_NET = """
class U(nn.Module):
    def forward(self, x):
        b = self.d(x)
        b = {}
        {}
"""
_DICE = (
    "def dice(z, y):\n    p = z.softmax(1)\n    {}\n"
    "    return (p * y).sum() / (p.sum() + y.sum())\n"
    "loss = F.cross_entropy(z, y, ignore_index=255) + 1 - dice(z, y)"
)
_CODES = "m = {{v: i{} for i, v in enumerate(sorted(df.c.unique()))}}\nx = df.c.map(m).fillna({})"
_ITEM = """
class D:
    def __getitem__(self, i):
        {}
            x = TF.normalize(x, M, S)
        return x
"""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("parts = np.split(x, np.flatnonzero(np.diff(q)))", "cut too early"),
        ("cuts = np.where(np.diff(q) != 0)[0]\nparts = np.split(x, cuts)", "cut too early"),
        ("cuts = np.flatnonzero(q[1:] != q[:-1])\nparts = np.split(x, cuts)", "cut too early"),
        ("acc = (p == y[mask]).sum().item() / len(y)", "share of all rows"),
        ("acc = (p[idx] == y[idx]).sum() / y.shape[0]", "share of all rows"),
        ("acc = (z.argmax(1) == y[val_mask]).sum().float() / y.size(0)", "share of all rows"),
        ("inv = deg.pow(-1.0)\nw = inv[row] * inv[col]", "inverse at both ends"),
        ("inv = 1 / degree\nw = inv[e[0]] * inv[e[1]]", "inverse at both ends"),
        ("d = deg ** -1\nw = d[src] * d[dst]", "inverse at both ends"),
        (_NET.format("self.up(b)", "return torch.cat([b, b], 1)"), "joined twice"),
        (_NET.format("self.up2(b)", "return self.f(torch.cat((b, b), dim=1))"), "joined twice"),
        (_NET.format("F.upsample(b)", "return torch.cat([b, b], dim=-3)"), "joined twice"),
        (_DICE.format("y = (y == 1).float()"), "ignored in overlap"),
        (_DICE.format("p = p[:, 1]"), "ignored in overlap"),
        (_DICE.format("pass").replace("dice", "soft_iou"), "ignored in overlap"),
        (_CODES.format("", 0), "code of the first"),
        (_CODES.format("", 0).replace("sorted(df.c.unique())", "set(df.c)"), "code of the first"),
        (_CODES.format("", 0).replace("sorted(df.c.unique())", "df.c.dropna().unique()"),
         "code of the first"),
        (_ITEM.format("if self.train:"), "scaled in training alone"),
        (_ITEM.format("if self.split == 'train':"), "scaled in training alone"),
        (_ITEM.format("if self.is_train:"), "scaled in training alone"),
    ],
)  # fmt: skip
def test_it_finds_wrong_borders_and_counts(text: str, kind: str) -> None:
    assert kind in kinds_by(text, categories, accuracy, graphs, skip_connections, dice, transforms)


@pytest.mark.parametrize(
    "text",
    [
        "parts = np.split(x, np.flatnonzero(np.diff(q)) + 1)",
        "cuts = np.flatnonzero(np.diff(q, prepend=q[0]))\nparts = np.split(x, cuts)",
        "acc = (p == y[mask]).sum() / mask.sum()",
        "acc = (p == y).sum() / len(y)",
        "inv = deg.pow(-0.5)\nw = inv[row] * inv[col]",
        "inv = deg.pow(-1.0)\nw = inv[row]",
        _NET.format("self.up(b)", "return torch.cat([b, x], 1)"),
        _DICE.format("valid = y != 255"),
        _CODES.format(" + 1", 0),
        _CODES.format("", -1),
        _ITEM.format("if self.normalise:"),
    ],
)
def test_it_is_silent_about_right_borders_and_counts(text: str) -> None:
    assert not kinds_by(text, categories, accuracy, graphs, skip_connections, dice, transforms)
