"""Rating prediction from user/item ids plus the item's average rating."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

USERS, ITEMS = 120, 700


def read_exports(seed=0):
    rng = np.random.default_rng(seed)
    taste, style = rng.normal(size=(USERS, 3)), rng.normal(size=(ITEMS, 3))
    quality = rng.normal(0, 0.6, ITEMS)
    pairs = rng.permutation(USERS * ITEMS)[:3200]
    user, item = pairs // ITEMS, pairs % ITEMS
    rating = 3.2 + quality[item] + 0.25 * (taste[user] * style[item]).sum(1) + rng.normal(0, 0.8, len(user))
    rows = np.stack([user, item, rating.clip(1, 5).round(1)], axis=1)
    return rows[:2600], rows[500:]


def item_means(rows, prior=3.2):
    total = np.full(ITEMS, prior)
    count = np.full(ITEMS, 1.0)
    np.add.at(total, rows[:, 1].astype(int), rows[:, 2])
    np.add.at(count, rows[:, 1].astype(int), 1)
    return total, count


class Ratings(Dataset):
    def __init__(self, rows, total, count, in_stats):
        self.user = torch.tensor(rows[:, 0], dtype=torch.long)
        self.item = torch.tensor(rows[:, 1], dtype=torch.long)
        self.y = torch.tensor(rows[:, 2], dtype=torch.float32)
        i = rows[:, 1].astype(int)
        own = rows[:, 2] if in_stats else 0.0
        mean = (total[i] - own) / (count[i] - float(in_stats))
        self.mean = torch.tensor(mean - 3.2, dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, k):
        return {"user": self.user[k], "item": self.item[k], "mean": self.mean[k], "rating": self.y[k]}


class Recommender(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.u, self.v = nn.Embedding(USERS, dim), nn.Embedding(ITEMS, dim)
        nn.init.normal_(self.u.weight, std=0.3)
        nn.init.normal_(self.v.weight, std=0.3)
        self.mlp = nn.Sequential(nn.Linear(2 * dim + 1, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 1))

    def forward(self, b):
        z = torch.cat([self.u(b["user"]), self.v(b["item"]), 2 * b["mean"][:, None]], dim=1)
        return 3.2 + self.mlp(z).squeeze(1)


def rmse(model, loader):
    model.eval()
    se = n = 0
    with torch.no_grad():
        for b in loader:
            se += ((model(b) - b["rating"]) ** 2).sum().item()
            n += len(b["rating"])
    return (se / n) ** 0.5


def main():
    torch.manual_seed(4)
    first, second = read_exports()
    rows = np.unique(np.concatenate([first, second]), axis=0)
    rows = rows[np.random.default_rng(1).permutation(len(rows))]
    cut = int(0.8 * len(rows))
    train_rows, val_rows = rows[:cut], rows[cut:]
    total, count = item_means(train_rows)
    train_loader = DataLoader(Ratings(train_rows, total, count, True), batch_size=64, shuffle=True)
    val_loader = DataLoader(Ratings(val_rows, total, count, False), batch_size=200)
    baseline = np.sqrt(((val_rows[:, 2] - train_rows[:, 2].mean()) ** 2).mean())
    print(f"{len(train_rows)} train / {len(val_rows)} val ratings, constant predictor rmse {baseline:.3f}")
    model = Recommender()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(7):
        model.train()
        se = 0.0
        for b in train_loader:
            loss = ((model(b) - b["rating"]) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            se += loss.item() * len(b["rating"])
        print(f"epoch {epoch}: train rmse {(se / len(train_rows)) ** 0.5:.3f}  val rmse {rmse(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
