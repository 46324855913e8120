import torch
from torch import nn
from torch.amp import GradScaler, autocast

torch.manual_seed(23)


def get_data(n=2048):
    x = torch.randn(n, 24)
    w = torch.randn(24, 5)
    y = (x @ w + 0.5 * torch.randn(n, 5)).argmax(1)
    return x, y


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(24, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 5))

    def forward(self, x):
        return self.net(x)


def train():
    x, y = get_data()
    model = MLP()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = GradScaler("cpu", init_scale=1024.0, growth_interval=12)
    crit = nn.CrossEntropyLoss()
    n_iter = 240
    for i in range(n_iter):
        idx = torch.randint(0, len(x), (64,))
        optimizer.zero_grad()
        with autocast("cpu", dtype=torch.float16):
            out = model(x[idx])
            loss = crit(out.float(), y[idx])
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        optimizer.step()
        scaler.update()
        if i % 20 == 0:
            print(f"iter {i} loss {loss.item():.4f} scale {scaler.get_scale():.0f}")


if __name__ == "__main__":
    train()
