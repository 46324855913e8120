import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Field(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 32), nn.Tanh(), nn.Linear(32, dim))
        self.damp = nn.Parameter(torch.tensor(0.1))

    def forward(self, x):
        return self.net(x) - self.damp * x ** 3


def rollout(field, x, n, dt):
    states = []
    for _ in range(n):
        x = x + dt * field(x)
        states.append(x)
    return torch.stack(states, 1)


def simulate(x, n=8, dt=0.1, sub=20):
    A = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    out = []
    for _ in range(n):
        for _ in range(sub):
            x = x + dt / sub * (x @ A.T - 0.2 * x ** 3).clamp(-1e3, 1e3)
        out.append(x)
    return torch.stack(out, 1)


def main():
    torch.manual_seed(1)
    x0 = torch.randn(2560, 2)
    x0[1651] = torch.tensor([61.0, -48.0])
    target = simulate(x0)
    loader = DataLoader(TensorDataset(x0, target), batch_size=16)
    field = Field(2)
    optimizer = torch.optim.Adam(field.parameters(), lr=5e-3)
    for epoch in range(2):
        acc = 0.0
        for k, (x, y) in enumerate(loader):
            pred = rollout(field, x, 8, 0.1)
            loss = nn.functional.mse_loss(pred, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            acc += loss.item()
            if (k + 1) % 32 == 0:
                print(f"epoch {epoch} it {k + 1} mse {acc / 32:.5f} damp {field.damp.item():.3f}")
                acc = 0.0


if __name__ == "__main__":
    main()
