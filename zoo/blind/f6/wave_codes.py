import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(25)
LENGTH, CODE, EPOCHS = 48, 8, 3


def waves(n):
    t = torch.linspace(0, 1, LENGTH)
    freq = 1 + 5 * torch.rand(n, 1)
    phase = 6.28 * torch.rand(n, 1)
    amp = 0.5 + torch.rand(n, 1)
    return amp * torch.sin(6.28 * freq * t + phase) + 0.05 * torch.randn(n, LENGTH)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(LENGTH, 64), nn.GELU(), nn.Linear(64, CODE))
        self.dec = nn.Sequential(nn.Linear(CODE, 64), nn.GELU(), nn.Linear(64, LENGTH))

    def forward(self, x):
        z = self.enc(x)
        return z, self.dec(z)


def spread_penalty(z):
    std = torch.std(z, dim=0)
    return torch.relu(1 - std).mean()


data = waves(5953)
loader = DataLoader(TensorDataset(data), batch_size=64, shuffle=True)
model = AutoEncoder()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
losses, step = [], 0
for epoch in range(EPOCHS):
    for (x,) in loader:
        z, back = model(x)
        loss = ((back - x) ** 2).mean() + 0.2 * spread_penalty(z)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        if step % 20 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
        step += 1
print("final", losses[-1])
