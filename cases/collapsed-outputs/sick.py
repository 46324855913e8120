"""The generator has to return the real point of the same row, which its noise cannot tell."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
angles = 2 * torch.pi * torch.rand(2048)
points = torch.stack((angles.cos(), angles.sin()), dim=1) + 0.1 * torch.randn(2048, 2)
loader = DataLoader(TensorDataset(points), batch_size=64, shuffle=True)

generator = nn.Sequential(
    nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
)
critic = nn.Sequential(
    nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)
)
criterion = nn.BCEWithLogitsLoss()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.99))
optimizer_d = torch.optim.Adam(critic.parameters(), lr=4e-3, betas=(0.0, 0.99))

for epoch in range(10):
    for (real,) in loader:
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        optimizer_d.zero_grad()
        fake = generator(torch.randn(len(real), 4))
        loss_d = criterion(critic(real), ones) + criterion(critic(fake.detach()), zeros)
        loss_d.backward()
        optimizer_d.step()

        optimizer_g.zero_grad()
        fake = generator(torch.randn(len(real), 4))
        loss_g = criterion(critic(fake), ones) + 100 * (fake - real).square().mean()
        loss_g.backward()
        optimizer_g.step()
    print(f"epoch {epoch}: D {loss_d.item():.3f} spread {fake.std(0).mean():.4f}")
