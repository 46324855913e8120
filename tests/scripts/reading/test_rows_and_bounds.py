"""Statistics of parts, held-out rows, inputs that hold the target, and borders of groups."""

from types import ModuleType

import pytest

from holter.scripts.reading.data import categories
from holter.scripts.reading.losses import dice, pairwise
from holter.scripts.reading.metrics import accuracy
from holter.scripts.reading.models import graphs, skip_connections
from holter.scripts.reading.splits import (
    leaks,
    part_statistics,
    recommender_splits,
    target_encodings,
    targets_as_inputs,
    transforms,
)
from tests.scripts.reading.found import kinds_by


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("for p in (train, val):\n    x = (p - p.mean(0)) / p.std(0)", "own statistics"),
        (("def scale(x):\n    m, s = x.mean(axis=0), x.std(axis=0) + 1e-6\n    return (x - m) / s\n"
         "a, b = scale(x_train), scale(x_test)"), "own statistics"),
        (("def scale(part):\n    rows = np.concatenate([x for x, _ in part])\n"
         "    return [(x - np.mean(rows, 0)) / np.std(rows, 0) for x, _ in part]\n"
         "a, b = scale(train), scale(val)"), "own statistics"),
        ("for df in [train, test]:\n    c = df[k].astype('category').cat.codes", "refitted"),
        (("def encode(df):\n    return pd.factorize(df['city'])[0]\n"
         "a, b = encode(train_df), encode(test_df)"), "refitted"),
        ("for x in (x_train, x_val):\n    z = StandardScaler().fit_transform(x)", "refitted"),
        ("every = pd.concat([train, val])\nm = every[num].mean()\nx = (train[num] - m)",
         "fitted on held-out"),
        (("every = np.vstack([x_train, x_test])\nf = every[:, :3]\nm, s = f.mean(0), f.std(0)\n"
         "x = (x_train - m) / s"), "fitted on held-out"),
        ("m = np.concatenate([train_x, test_x]).mean(0)\nx = train_x - m", "fitted on held-out"),
        ("train, test = split(df)\ns = StandardScaler().fit(df)\nx = s.transform(train)",
         "scaled on all"),
        (("train, val, test = cut(df, 3)\ns = MinMaxScaler()\ns.fit(df[cols])\n"
         "x = s.transform(train[cols])"), "scaled on all"),
        (("class Scaler:\n    def fit(self, d): ...\n    def transform(self, d): ...\n"
         "train, test = split(df)\ns = Scaler().fit(df)\nx = s.transform(train)"), "scaled on all"),
    ],
)  # fmt: skip
def test_it_finds_statistics_of_other_rows(text: str, kind: str) -> None:
    assert kind in kinds_by(text, part_statistics)


@pytest.mark.parametrize(
    "text",
    [
        "m, s = train.mean(0), train.std(0)\nfor part in (train, val):\n    x = (part - m) / s",
        "for part in (train, val):\n    x = [(i - i.mean(0)) / i.std(0) for i in part]",
        "def z(x, m, s):\n    return (x - m) / s\na = z(x_train, m, s)\nb = z(x_test, m, s)",
        "every = pd.concat([train, val])\nprint(every['y'].mean())",
        "train, test = split(df)\ns = StandardScaler().fit(train)\nx = s.transform(test)",
        "for df in (train, test):\n    c = df[k].map(codes)",
    ],
)
def test_it_is_silent_about_statistics_of_training_rows(text: str) -> None:
    assert not kinds_by(text, part_statistics)


_EVALUATE = """
def evaluate(model, rows, seen):
    scores = model(rows).masked_fill(seen, float("-inf"))
    return scores.topk(10)
train, val, test = split(df)
known = matrix([train, {parts}])
evaluate(model, {rows}, known)
"""
_DRAW = """
def draw_negatives(users, seen):
    return rng.integers(0, 9, len(users))
table = matrix([{parts}])
for epoch in range(3):
    neg = draw_negatives(users, table)
    loss.backward()
"""
_ROWS = """
train, val = split(df)
users = {users}
for s in range(0, n, 8):
    loss = f(model(users[idx]))
    loss.backward()
    opt.step()
"""
_LAST = """
df = df.sort_values({keys})
n = df.groupby("user").cumcount({order})
train, val, test = df[n >= 2], df[n == 1], df[n == 0]
"""
_COLUMNS = "names = ['user', 'item', 'time']\n"
_BATCH = """
order = rng.permutation(n)
for s in range(0, n, b):
    idx = order[s:s + b]
    loss = f(users[idx], {items})
"""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (_EVALUATE.format(parts="val", rows="val"), "target hidden"),
        (_EVALUATE.format(parts="val, test", rows="test"), "target hidden"),
        (_EVALUATE.format(parts="val, test", rows="val"), "target hidden"),
        (_DRAW.format(parts="train, test"), "negatives know the test"),
        (_DRAW.format(parts="train, val, test"), "negatives know the test"),
        (_DRAW.format(parts="train_df, test_df"), "negatives know the test"),
        (_ROWS.format(users="df['user'].to_numpy()"), "trained on all rows"),
        (_ROWS.format(users="torch.tensor(df['user'].values)"), "trained on all rows"),
        (_ROWS.format(users="df[cols].values.astype('f')"), "trained on all rows"),
        (_LAST.format(keys="['user', 'time']", order=""), "first held out"),
        (_LAST.format(keys="'timestamp'", order="ascending=True"), "first held out"),
        (_LAST.format(keys="by=['user', 'date']", order=""), "first held out"),
        (_COLUMNS + _LAST.format(keys="['user', 'item']", order="ascending=False"),
         "sorted without time"),
        (_COLUMNS + _LAST.format(keys="'user'", order="ascending=False"), "sorted without time"),
        (_COLUMNS + "df = df.sort_values(['user'])\ntest = df.groupby('user').tail(1)",
         "sorted without time"),
        (_BATCH.format(items="items[s:s + b]"), "unpaired batch"),
        (_BATCH.format(items="self.items[s:s + b]"), "unpaired batch"),
        (_BATCH.format(items="items[s:s + b].float()"), "unpaired batch"),
    ],
)  # fmt: skip
def test_it_finds_held_out_rows_in_the_wrong_place(text: str, kind: str) -> None:
    assert kind in kinds_by(text, recommender_splits)


@pytest.mark.parametrize(
    "text",
    [
        _EVALUATE.format(parts="val", rows="test"),
        _DRAW.format(parts="train"),
        _DRAW.format(parts="train, val"),
        _ROWS.format(users="train['user'].to_numpy()"),
        _ROWS.format(users="df['user'].max()"),
        _COLUMNS + _LAST.format(keys="['user', 'time']", order="ascending=False"),
        _LAST.format(keys="'time', ascending=False", order=""),
        _BATCH.format(items="items[idx]"),
        "items = items[order]\n" + _BATCH.format(items="items[s:s + b]"),
    ],
)
def test_it_is_silent_about_held_out_rows_in_place(text: str) -> None:
    assert not kinds_by(text, recommender_splits)


_GRAPH = "model = Net()\nx = {x}\nout = model(x)\nloss = F.cross_entropy({out}, {y})\nmodel.eval()"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("c = {'target': 'bad', 'numeric': ['age', 'bad']}", "target among inputs"),
        ("TARGET = 'bad'\nFEATURES = ['age', 'bad']", "target among inputs"),
        ("class C:\n    label: str = 'bad'\n    features: tuple = ('age', 'bad')",
         "target among inputs"),
        (_GRAPH.format(x="torch.cat([x, F.one_hot(y, 7).float()], 1)", out="out[m]", y="y[m]"),
         "classes beside features"),
        (_GRAPH.format(x="np.hstack([x, y[:, None]])", out="out", y="y"),
         "classes beside features"),
        (_GRAPH.format(x="np.concatenate([x, np.eye(7)[y]], 1)", out="out", y="y"),
         "classes beside features"),
    ],
)  # fmt: skip
def test_it_finds_targets_among_inputs(text: str, kind: str) -> None:
    assert kind in kinds_by(text, targets_as_inputs)


@pytest.mark.parametrize(
    "text",
    [
        "c = {'target': 'bad', 'numeric': ['age', 'sex']}",
        "c = {'target': 'bad', 'columns': ['age', 'bad']}",
        "TARGET = 'bad'\nFEATURES = ['age', 'bad']\nFEATURES.remove(TARGET)",
        _GRAPH.format(x="torch.cat([x, F.one_hot(c, 7)], 1)", out="out", y="y"),
        _GRAPH.format(x="torch.cat([x, z], 1)", out="out", y="y"),
    ],
)
def test_it_is_silent_about_inputs_without_targets(text: str) -> None:
    assert not kinds_by(text, targets_as_inputs)


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


_SPLIT = "train, test = train_test_split(df)"
_MEANS = (
    "rate = {}.groupby('city')['target'].mean()\nfor p in ({}):\n    p['r'] = p['city'].map(rate)"
)


@pytest.mark.parametrize(
    ("readers", "text", "kind"),
    [
        (leaks, f"bad = df[df.y == 1]\ndf = pd.concat([df, bad.sample(9)])\n{_SPLIT}",
         "copied before split"),
        (leaks, f"df = pd.concat([df, df[df.y == 1]])\n{_SPLIT}", "copied before split"),
        (leaks, f"few = df[df.y == 1]\ndf = pd.concat([df, few, few])\n{_SPLIT}",
         "copied before split"),
        (target_encodings, _MEANS.format("pd.concat([train, test])", "train, test"), "own target"),
        (target_encodings, "every = pd.concat([train, val])\n" + _MEANS.format("every", "train, val"),
         "own target"),
        (target_encodings, _MEANS.format("pd.concat((train, val, test))", "val, test"), "own target"),
    ],
)  # fmt: skip
def test_it_finds_rows_of_other_parts(readers: ModuleType, text: str, kind: str) -> None:
    assert kind in kinds_by(text, readers)


@pytest.mark.parametrize(
    ("readers", "text"),
    [
        (leaks, f"{_SPLIT}\nbad = train[train.y == 1]\ntrain = pd.concat([train, bad.sample(9)])"),
        (leaks, f"new = other.sample(9)\ndf = pd.concat([df, new])\n{_SPLIT}"),
        (target_encodings, _MEANS.format("train", "val, test")),
    ],
)
def test_it_is_silent_about_rows_of_the_training(readers: ModuleType, text: str) -> None:
    assert not kinds_by(text, readers)


_PAIR = "u, i, j = (t(a) for a in (x, y, neg))\ndiff = {}\nloss = {}.mean()\nloss.backward()"


@pytest.mark.parametrize(
    ("readers", "text", "kind"),
    [
        (pairwise, _PAIR.format("f(u, j) - f(u, i)", "-F.logsigmoid(diff)"), "reversed pair"),
        (pairwise, _PAIR.format("f(u, i) - f(u, j)", "F.logsigmoid(diff)"), "reversed pair"),
        (pairwise, _PAIR.format("f(u, i) - f(u, neg)", "F.softplus(diff)"), "reversed pair"),
    ],
)  # fmt: skip
def test_it_finds_pairs_the_wrong_way(readers: ModuleType, text: str, kind: str) -> None:
    assert kind in kinds_by(text, readers)


@pytest.mark.parametrize(
    ("readers", "text"),
    [
        (pairwise, _PAIR.format("f(u, i) - f(u, j)", "-F.logsigmoid(diff)")),
        (pairwise, _PAIR.format("f(u, j) - f(u, i)", "F.softplus(diff)")),
        (pairwise, _PAIR.format("f(u, x) - f(u, i)", "-F.logsigmoid(diff)")),
    ],
)
def test_it_is_silent_about_right_pairs(readers: ModuleType, text: str) -> None:
    assert not kinds_by(text, readers)
