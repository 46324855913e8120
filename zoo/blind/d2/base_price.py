import copy
import numpy as np
import torch
import torch.nn as nn

SEED = 21
COLUMNS = ["area", "rooms", "age", "lot", "distance", "sold"]


def load_sales(n=1800):
    rng = np.random.default_rng(SEED)
    area = rng.normal(120, 35, n).clip(35, 300)
    rooms = np.round(area / 28 + rng.normal(0, 0.7, n)).clip(1, 10)
    age = rng.gamma(2, 14, n)
    lot = rng.lognormal(6.1, 0.55, n)
    distance = rng.gamma(2, 5, n)
    sold = rng.uniform(2008, 2020, n)
    log_price = (11.2 + 0.008 * (area - 120) + 0.04 * rooms - 0.006 * age + 0.45 * (np.log(lot) - 6.1)
                 - 0.035 * distance + 0.03 * (sold - 2008) + rng.normal(0, 0.10, n))
    price = np.exp(log_price)
    lot[rng.random(n) < 0.08] = 999999
    table = np.stack([area, rooms, age, lot, distance, sold], 1)
    return table, price


def clean(table):
    table = table.copy()
    lot = table[:, 3]
    lot[lot > 100000] = np.median(lot[lot <= 100000])
    return table


class PriceNet(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, 48), nn.Tanh(), nn.Linear(48, 24), nn.Tanh())
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


class Trainer:
    def __init__(self, model, y_mean, y_std, lr=4e-4):
        self.model = model
        self.y_mean, self.y_std = y_mean, y_std
        self.opt = torch.optim.RMSprop(model.parameters(), lr=lr)
        self.loss_fn = nn.MSELoss()

    def train_epoch(self, x, y, batch=48):
        self.model.train()
        losses = []
        for idx in torch.randperm(len(x)).split(batch):
            self.opt.zero_grad()
            loss = self.loss_fn(self.model(x[idx]), y[idx])
            loss.backward()
            self.opt.step()
            losses.append(loss.item())
        return float(np.mean(losses))

    @torch.no_grad()
    def score(self, x, price):
        self.model.eval()
        pred = torch.exp(self.model(x) * self.y_std + self.y_mean)
        mae = (pred - price).abs().mean().item()
        r2 = 1 - ((pred - price) ** 2).sum().item() / ((price - price.mean()) ** 2).sum().item()
        return mae / 1000, r2


if __name__ == "__main__":
    torch.manual_seed(SEED)
    table, price = load_sales()
    table = clean(table)
    order = np.argsort(table[:, COLUMNS.index("sold")])
    table = table[order]
    price = price[order]
    a, b = 1260, 1530
    mu, sd = table[:a].mean(0), table[:a].std(0)
    x = torch.tensor((table - mu) / sd, dtype=torch.float32)
    target = np.log(price)
    y_mean, y_std = target[:a].mean(), target[:a].std()
    y = torch.tensor((target - y_mean) / y_std, dtype=torch.float32)
    money = torch.tensor(price, dtype=torch.float32)

    trainer = Trainer(PriceNet(x.shape[1]), y_mean, y_std)
    best_mae, best_state, best_epoch = float("inf"), None, 0
    for epoch in range(14):
        loss = trainer.train_epoch(x[:a], y[:a])
        mae, r2 = trainer.score(x[a:b], money[a:b])
        if mae < best_mae:
            best_mae, best_epoch = mae, epoch
            best_state = copy.deepcopy(trainer.model.state_dict())
        print(f"epoch {epoch:02d} mse {loss:.4f} val_mae {mae:.2f}k val_r2 {r2:.3f}")
    trainer.model.load_state_dict(best_state)
    mae, r2 = trainer.score(x[b:], money[b:])
    print(f"restored epoch {best_epoch}: test mae {mae:.2f}k r2 {r2:.3f}")
