"""Held-out rows of recommenders."""

import pytest

from holter.scripts.reading.splits import recommender_splits
from tests.scripts.reading.found import kinds_by

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
