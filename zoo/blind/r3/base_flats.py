import numpy as np
import torch
from torch import nn


def load_table(n, seed=3):
    g = np.random.default_rng(seed)
    table = {
        "area": g.gamma(6.0, 14.0, n),
        "year": g.integers(1900, 2024, n).astype(float),
        "income": g.lognormal(10.4, 0.45, n),
        "distance": g.exponential(4.0, n),
        "district": g.choice(["harbour", "old town", "hill", "west", "park", "mill", "airport", "lakeside"], n),
        "heating": g.choice(["gas", "district", "electric"], n, p=[0.5, 0.35, 0.15]),
    }
    bonus = {"harbour": 0.5, "old town": 0.7, "hill": 0.2, "west": -0.2, "park": 0.4, "mill": -0.5, "airport": -0.8, "lakeside": 0.9}
    heat = {"gas": 0.0, "district": 0.1, "electric": -0.15}
    log_price = (
        7.2 + 0.8 * np.log(table["area"]) + 0.0035 * np.abs(table["year"] - 1950)
        + 0.25 * np.log(table["income"]) - 0.05 * table["distance"]
        + np.array([bonus[d] for d in table["district"]]) * (1.2 - 0.05 * table["distance"])
        + np.array([heat[h] for h in table["heating"]]) + 0.05 * g.standard_normal(n)
    )
    table["price"] = np.exp(log_price)
    return table


NUMERIC = ["area", "year", "income", "distance"]
CATEGORICAL = ["district", "heating"]


class Encoder:
    """Turns columns of strings into integer codes, in order of appearance."""

    def __init__(self):
        self.codes = {}

    def fit_transform(self, column):
        self.codes = {}
        for v in column:
            self.codes.setdefault(v, len(self.codes))
        return self.transform(column)

    def transform(self, column):
        return np.array([self.codes[v] for v in column])


class PriceNet(nn.Module):
    def __init__(self, sizes, n_num):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(s, 4) for s in sizes])
        self.body = nn.Sequential(nn.Linear(n_num + 4 * len(sizes), 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))

    def forward(self, num, cat):
        parts = [num] + [e(cat[:, j]) for j, e in enumerate(self.embs)]
        return self.body(torch.cat(parts, dim=1)).squeeze(1)


def main():
    torch.manual_seed(0)
    table = load_table(2400)
    order = np.random.default_rng(0).permutation(2400)
    tr, va = order[:1800], order[1800:]

    num = np.stack([table[c] for c in NUMERIC], axis=1)
    mean, std = num[tr].mean(axis=0), num[tr].std(axis=0)
    num_tr = torch.tensor((num[tr] - mean) / std, dtype=torch.float32)
    num_va = torch.tensor((num[va] - mean) / std, dtype=torch.float32)

    encoders = {c: Encoder() for c in CATEGORICAL}
    cat_tr = torch.tensor(np.stack([encoders[c].fit_transform(table[c][tr]) for c in CATEGORICAL], axis=1))
    cat_va = torch.tensor(np.stack([encoders[c].transform(table[c][va]) for c in CATEGORICAL], axis=1))

    y = np.log(table["price"])
    y_mean, y_std = y[tr].mean(), y[tr].std()
    y_tr = torch.tensor((y[tr] - y_mean) / y_std, dtype=torch.float32)
    price_va = table["price"][va]

    model = PriceNet([len(encoders[c].codes) for c in CATEGORICAL], len(NUMERIC))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    criterion = nn.HuberLoss()

    for epoch in range(1, 21):
        model.train()
        losses = []
        for idx in torch.randperm(len(y_tr)).split(100):
            pred = model(num_tr[idx], cat_tr[idx])
            loss = criterion(pred, y_tr[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 4 == 0:
            model.eval()
            with torch.no_grad():
                out = model(num_va, cat_va).numpy()
            price = np.exp(out * y_std + y_mean)
            r2 = 1 - ((price - price_va) ** 2).sum() / ((price_va - price_va.mean()) ** 2).sum()
            mape = np.mean(np.abs(price - price_va) / price_va)
            print(f"epoch {epoch:2d}: train loss {np.mean(losses):.4f}, val R2 {r2:.3f}, val MAPE {100 * mape:.1f}%")


if __name__ == "__main__":
    main()
