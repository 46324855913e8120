"""Statistics of each part by itself, or of all parts together."""

import pytest

from holter.scripts.reading.splits import part_statistics
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
