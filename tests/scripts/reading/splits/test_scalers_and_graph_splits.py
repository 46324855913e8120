"""Readers of scalers, graph splits, and twins without a pattern."""

import pytest

from holter.scripts.reading import read

SPREAD = "words = load()\nmean, std = x[train_mask].mean(0), x[train_mask].std(0)\n{}"
LOGS = (
    "log_y = np.log(df['price'])\nm, s = log_y.mean(), log_y.std()\n"
    "y = (log_y - m) / s\npred = torch.exp({})"
)
FOUND = {
    "unscaled predictions": (
        LOGS.format("model(x)"),
        LOGS.format("model(x).squeeze(-1)"),
        LOGS.format("net(x)").replace("np.log(", "np.log1p(").replace("torch.exp(", "torch.expm1("),
    ),
    "tiny spread": (
        SPREAD.format("x = (x - mean) / (std + 1e-8)"),
        SPREAD.format("x = (x - mean) / std.clamp(min=1e-8)"),
        SPREAD.format("x = (x - mean) / (std + 1e-6)"),
    ),
    "shared mask": (
        "self.mask_test = self.mask_train\nself.mask_test[u, i] = True\nf(self.mask_train)",
        "test_mask = seen_mask\ntest_mask[a] = 1\nprint(seen_mask)",
        "seen = known\nseen[u, i] = True\nevaluate(known)",
    ),
    "undone otherwise": (
        "z = (y - mean) / std\np = (model(x) + mean) * std",
        "z = (y - self.mu) / self.sd\np = self.sd * (out + self.mu)",
        "y = (t - s['mean']) / s['std']\nq = (p + s['mean']) * s['std']",
    ),
    "another scaler": (
        "x_scaler.fit(x)\ny_scaler.fit(y)\np = x_scaler.inverse_transform(preds)",
        "scaler_x.fit(x)\nscaler_y.fit(y)\np = scaler_x.inverse_transform(y_pred.numpy())",
        (
            "self.x_scaler.fit(x)\nself.target_scaler.fit(y)\n"
            "p = self.x_scaler.inverse_transform(outputs)"
        ),
    ),
}
HEALTHY = {
    "unscaled predictions": (
        LOGS.format("model(x) * s + m"),
        LOGS.format("model(x)") + "\nq = model(x) * s + m",
        "y = np.log(df['price'])\npred = torch.exp(model(x))",
    ),
    "tiny spread": (
        SPREAD.format("std[std < 0.05] = 1.0\nx = (x - mean) / (std + 1e-8)"),
        SPREAD.format("x = (x - mean) / (std + 0.1)"),
        "words = 1\nmean, std = x.mean(0), x.std(0)\nx = (x - mean) / (std + 1e-8)",
    ),
    "shared mask": (
        "self.mask_test = self.mask_train.clone()\nself.mask_test[u, i] = True\nf(self.mask_train)",
        "test_mask = seen_mask\nprint(test_mask, seen_mask)",
        "self.mask = mask\nself.mask[0] = True",
    ),
    "undone otherwise": (
        "z = (y - mean) / std\np = model(x) * std + mean",
        "p = (model(x) + bias) * scale",
        "z = (y - lo) / (hi - lo)\np = p * (hi - lo) + lo",
    ),
    "another scaler": (
        "x_scaler.fit(x)\ny_scaler.fit(y)\np = y_scaler.inverse_transform(preds)",
        "x_scaler.fit(x)\np = x_scaler.inverse_transform(preds)",
        "x_scaler.fit(x)\ny_scaler.fit(y)\nx = x_scaler.inverse_transform(x)",
    ),
}


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
