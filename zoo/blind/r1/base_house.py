import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def load_houses(n=3000, seed=0):
    g = torch.Generator().manual_seed(seed)
    area = 60 + 180 * torch.rand(n, generator=g)
    rooms = (area / 35 + torch.randn(n, generator=g)).round().clamp(1, 8)
    year = 1930 + 90 * torch.rand(n, generator=g)
    dist = 25 * torch.rand(n, generator=g)
    lot = 2000 * torch.rand(n, generator=g) ** 2
    X = torch.stack([area, rooms, year, dist, lot], 1)
    age = 2020 - year
    price = 2200 * area + 9000 * rooms - 600 * age + 4 * (age - 45) ** 2 * 10 + 90000 * torch.exp(-dist / 6) + 25 * lot
    price = price + 8000 * torch.randn(n, generator=g)
    return X, price


class Regressor(nn.Module):
    def __init__(self, d, h=48):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU())
        self.out = nn.Linear(h, 1)

    def forward(self, x):
        return self.out(self.layers(x))


class Trainer:
    def __init__(self, model, lr=3e-3, weight_decay=1e-5):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)
        self.sched = torch.optim.lr_scheduler.ReduceLROnPlateau(self.opt, mode="min", factor=0.3, patience=1)
        self.criterion = nn.MSELoss()

    def fit(self, train_loader, val, y_scale, epochs=10):
        for epoch in range(epochs):
            self.model.train()
            seen, acc_loss = 0, 0.0
            for xb, yb in train_loader:
                self.opt.zero_grad()
                pred = self.model(xb)
                loss = self.criterion(pred, yb)
                loss.backward()
                self.opt.step()
                acc_loss += loss.item() * len(xb)
                seen += len(xb)
            vloss, rmse, r2 = self.validate(val, y_scale)
            self.sched.step(vloss)
            print(f"epoch {epoch:02d} train_mse={acc_loss / seen:.4f} val_mse={vloss:.4f} rmse={rmse:,.0f} R2={r2:.3f}")

    @torch.no_grad()
    def validate(self, val, y_scale):
        self.model.eval()
        x, y = val
        p = self.model(x)
        mse = ((p - y) ** 2).mean().item()
        return mse, mse ** 0.5 * y_scale, 1 - mse / y.var().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    X, price = load_houses()
    cut = int(0.8 * len(X))
    X_tr, X_va, y_tr, y_va = X[:cut], X[cut:], price[:cut], price[cut:]
    mu, sd = X_tr.mean(0), X_tr.std(0)
    X_tr, X_va = (X_tr - mu) / sd, (X_va - mu) / sd
    y_mu, y_sd = y_tr.mean(), y_tr.std()
    y_tr, y_va = (y_tr - y_mu) / y_sd, (y_va - y_mu) / y_sd
    y_tr, y_va = y_tr.unsqueeze(1), y_va.unsqueeze(1)
    loader = DataLoader(TensorDataset(X_tr, y_tr), batch_size=64, shuffle=True)
    Trainer(Regressor(X.shape[1])).fit(loader, (X_va, y_va), y_sd.item())
