import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(21)


class Readings(Dataset):
    def __init__(self, n=6400):
        g = torch.Generator().manual_seed(4)
        angle = torch.rand(n, generator=g) * 2 * math.pi
        r = 1 + 0.1 * torch.randn(n, generator=g)
        a = torch.stack([r * angle.cos(), r * angle.sin()], 1)
        b = a @ torch.tensor([[0.5, 0.2], [-0.3, 0.8]]) + 0.1 * torch.randn(n, 2, generator=g)
        self.rows = torch.cat([a, b], 1)
        self.rows[4207] = torch.tensor([870.0, -912.0, 655.0, 903.0])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.1), nn.Linear(32, 32), nn.LeakyReLU(0.1), nn.Linear(32, 4))

    def forward(self, x):
        x1, x2 = x.chunk(2, dim=1)
        if self.flip:
            x1, x2 = x2, x1
        s, t = self.net(x1).chunk(2, dim=1)
        z2 = x2 * torch.exp(s) + t
        out = torch.cat([z2, x1], 1) if self.flip else torch.cat([x1, z2], 1)
        return out, s.sum(1)


class Flow(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(i % 2 == 1) for i in range(depth)])

    def log_prob(self, x):
        logdet = torch.zeros(len(x))
        for layer in self.layers:
            x, ld = layer(x)
            logdet = logdet + ld
        base = -0.5 * (x ** 2).sum(1) - 2 * math.log(2 * math.pi)
        return base + logdet


data = DataLoader(Readings(), batch_size=32)
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3)
for epoch in range(1):
    for i, batch in enumerate(data):
        loss = -flow.log_prob(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 20 == 0:
            print(f"epoch {epoch} batch {i} nll {loss.item():.4f}")
