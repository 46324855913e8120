"""Mistakes in other spellings than those that their readers were written with, and twins."""

import pytest

from holter.scripts.reading import read

FORECAST = "HORIZON = 24  # forecast\nforecast = 1\n"
SUMMED = FORECAST + (
    "def smooth(s, k=24):\n    c = np.cumsum(np.insert(s, 0, 0.0))\n    out = np.empty_like(s)\n"
    "    for i in range(len(s)):\n        {}\n    return out\nx = smooth(s)"
)
PARTS = "a = encode(train)\nb = encode(test)\n"
LOADED = "    return TensorDataset(torch.tensor(x))\n" + PARTS
DATA = (
    "class Rows(Dataset):\n    def __init__(self, df{}):\n"
    "        {}\na = Rows(train_df)\nb = Rows(val_df)"
)
COLUMNS = "users, items = rows[:, 0], rows[:, 1]\n"
BATCH = "s, a, {r}, s2, {d} = buf.sample(64)\ny = {r} + GAMMA * {v}"
RANKED = "def {}(model, {}, k=10):\n    {}\n    return scores.topk(k, 1).indices\n{}"
MODULE = "class Net(nn.Module):\n    def {}(self, x):\n        return {}"
PROBE = "for _ in range(9):\n    loss = {}\n    loss.backward()\n    opt.step()\n{}"
PAIR = "def f(a, b):\n    s = a @ b.T / 0.1\n    t = {}\n    return {}\nf(x, y)"
BOTH = "F.cross_entropy(s, t) + F.cross_entropy(s.T, t)"
MASK = "self.register_buffer('causal', torch.tril(torch.ones(8, 8)).bool())"
SIGNS = "CLASSES = ['left', 'right', 'up', 'down']\n"

FOUND = {
    "centred window": (
        SUMMED.format(
            "a, b = max(0, i - k // 2), min(len(s), i + k // 2)\n"
            "        out[i] = (c[b] - c[a]) / (b - a)"
        ),
        SUMMED.format(
            "lo = max(i - k, 0)\n        hi = min(i + k + 1, len(s))\n"
            "        out[i] = (c[hi] - c[lo]) / (hi - lo)"
        ),
        FORECAST + "out = [s[max(0, i - w // 2) : i + w // 2 + 1].mean() for i in range(len(s))]",
        FORECAST + "for i in range(n):\n    lo, hi = max(0, i - k), min(n, i + k)\n"
        "    out[i] = np.mean(s[lo:hi])",
    ),
    "union with overlap": (
        "for p, y in dl:\n    inter += both\n    union += (p + y).sum()\niou = inter / union",
        "union = (pred + mask).sum((1, 2))\niou = inter / union",
        "iou = (p * y).sum() / torch.sum(p + y)",
        "self.union += pred.sum() + y.sum()\nreturned = self.inter / self.union",
    ),
    "refitted": (
        "def encode(t):\n    m = {c: {v: i + 1 for i, v in enumerate(sorted(set(t[c])))}"
        " for c in COLS}\n    x = [[m[c][v] for v in t[c]] for c in COLS]\n" + LOADED,
        "def encode(df):\n    levels = np.unique(df['city'])\n"
        "    ids = {v: k for k, v in enumerate(levels)}\n    x = df['city'].map(ids)\n" + LOADED,
        "def encode(df):\n    x = np.unique(df['kind'], return_inverse=True)[1]\n" + LOADED,
        DATA.format(
            "", "self.ids = {v: i for i, v in enumerate(df['shop'].unique())}\n        self.df = df"
        ),
    ),
    "unpaired shuffle": (
        COLUMNS + "p = torch.randperm(n)\nusers, items = users[p], items[torch.randperm(n)]",
        "p, q = torch.randperm(n), torch.randperm(n)\nimages, captions = images[p], captions[q]",
        "x = x[rng.permutation(n)]\ny = y[rng.permutation(n)]",
        COLUMNS + "users = users[torch.randperm(n)]\nitems = items[torch.randperm(n)]",
    ),
    "endless episode": (
        BATCH.format(r="br", d="bd", v="target(s2).max(1).values"),
        BATCH.format(r="rew", d="b_done", v="q(s2).max(1)[0]"),
        BATCH.format(r="r", d="terminated", v="q_target(s2).gather(1, best).squeeze(1)"),
    ),
    "batch normalised": (
        MODULE.format("embed", "F.normalize(self.image(x), dim=0)"),
        MODULE.format("encode_text", "F.normalize(self.text(x), 2, 0)"),
        MODULE.format("project", "nn.functional.normalize(self.head(self.body(x)), dim=0)"),
    ),
    "unread exclusion": (
        RANKED.format("recall_at", "watched", "scores = model.all()", "recall_at(m, w)"),
        RANKED.format("top", "purchased", "scores = model.all()", "top(m, purchased=w)"),
        RANKED.format("rank", "listened_mask", "scores = model.all()", "rank(m, w)"),
    ),
    "trained on held-out": (
        PROBE.format("F.cross_entropy(head(fte), test[2])", "(head(fte).argmax(1) == test[2])"),
        PROBE.format("loss_fn(probe(z_test), y_test)", "p = probe(z_test).argmax(1)\np == y_test"),
        PROBE.format("criterion(head(f), y_te)", "accuracy_score(y_te, head(f).argmax(1))"),
    ),
    "targets off diagonal": (
        PAIR.format("torch.zeros(len(s), dtype=torch.long)", BOTH),
        PAIR.format("torch.randperm(len(s)).to(s.device)", BOTH),
        PAIR.format("torch.ones(len(s)).long()", BOTH.replace("s.T", "s.t()")),
    ),
    "flipped classes": (
        SIGNS + "img = torch.rot90(img, int(torch.randint(0, 4, (1,))), (1, 2))",
        SIGNS + "k = rng.integers(4)\nimg = np.rot90(img, k).copy()",
        SIGNS + "x = torch.rot90(x, k=random.randint(0, 3), dims=(-2, -1))",
    ),
    "unread mask": (MODULE.format("f", "x").replace("return x", MASK),),
}
RIGHT = (
    SUMMED.format("a = max(0, i - k + 1)\n        out[i] = (c[i + 1] - c[a]) / (i + 1 - a)"),
    SUMMED.format("out[i] = (c[i + k] - c[i]) / k"),
    "lo, hi = max(0, i - k), i + k\nout = s[lo:hi].mean()",
    "union += (p + y - p * y).sum()",
    "union += ((p + y) > 0).sum()",
    "union += (p + y).sum()\niou = inter / (union - inter)",
    "iou = (p * y).sum() / (p | y).sum()",
    "def encode(t):\n    x = [table[v] for v in t['city']]\n" + LOADED,
    "def encode(t):\n    rows = {v: i for i, v in enumerate(t['id'])}\n    x = list(rows)\n"
    + LOADED,
    DATA.format(
        ", ids=None",
        "self.ids = ids\n        if ids is None:\n"
        "            self.ids = {v: i for i, v in enumerate(sorted(set(df['shop'])))}",
    ),
    COLUMNS + "p = torch.randperm(n)\nusers, items = users[p], items[p]",
    "source = source[torch.randperm(n)]\ntarget = target[torch.randperm(n)]",
    "real, fake = real[torch.randperm(n)], noise",
    BATCH.format(r="br", d="bd", v="(1 - bd) * target(s2).max(1).values"),
    "s, a, br, s2, bd = buf.sample(9)\nv = target(s2)\nv[bd.bool()] = 0\ny = br + GAMMA * v",
    MODULE.format("embed", "F.normalize(self.image(x), dim=1)"),
    MODULE.format("barlow", "F.normalize(self.image(x), dim=0)"),
    RANKED.format("rank", "watched", "scores = f().masked_fill(watched, -1e9)", "rank(m, w)"),
    PROBE.format("F.cross_entropy(head(ftr), train[2])", "(head(fte).argmax(1) == test[2])"),
    PROBE.format("F.cross_entropy(net(x), y)", "(net(x).argmax(1) == y)"),
    PAIR.format("torch.arange(len(s))", BOTH),
    PAIR.format("torch.zeros(len(s)).long()", "F.cross_entropy(torch.cat([p, s], 1), t)"),
    SIGNS + "k = rng.integers(4)\nimg, y = np.rot90(img, k), TURNED[y][k]",
    SIGNS + "img = np.rot90(img, TURNS[name])",
    "k = rng.integers(4)\nimg = np.rot90(img, k)",
)


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_mistakes_are_read(kind: str, text: str) -> None:
    assert kind in {pattern.kind for pattern in read(text)}


@pytest.mark.parametrize("text", RIGHT)
def test_right_sources_have_none_of_the_patterns(text: str) -> None:
    assert {pattern.kind for pattern in read(text)} & set(FOUND) == set()
