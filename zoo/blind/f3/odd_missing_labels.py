import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def assays(n=2400, tasks=4):
    g = torch.Generator().manual_seed(1)
    x = torch.randn(n, 15, generator=g)
    w = torch.randn(15, tasks, generator=g)
    y = torch.tanh(x @ w / 3) + 0.1 * torch.randn(n, tasks, generator=g)
    y[torch.rand(n, tasks, generator=g) < 0.5] = float("nan")
    return x, y


def masked_mse(pred, target):
    have = ~torch.isnan(target)
    return ((pred[have] - target[have]) ** 2).sum() / have.sum().clamp(min=1)


def main():
    torch.manual_seed(1)
    x, y = assays()
    loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
    model = nn.Sequential(nn.Linear(15, 48), nn.ReLU(), nn.Linear(48, 4))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(5):
        tot = 0.0
        for xb, yb in loader:
            loss = masked_mse(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item()
        print(f"epoch {epoch} mse {tot / len(loader):.4f} raw batch mean {yb.mean().item()}")


main()
