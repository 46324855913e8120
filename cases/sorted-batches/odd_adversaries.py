"""A discriminator steps on real points, then on generated ones: each batch has one label."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
angles = 2 * torch.pi * torch.rand(2560)
points = torch.stack((angles.cos(), angles.sin()), dim=1) + 0.1 * torch.randn(2560, 2)
loader = DataLoader(TensorDataset(points), batch_size=64, shuffle=True)

generator = nn.Sequential(
    nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
)
discriminator = nn.Sequential(
    nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)
)
criterion = nn.BCEWithLogitsLoss()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.99))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.0, 0.99))

for epoch in range(8):
    for (real,) in loader:
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        for samples, label in ((real, ones), (generator(torch.randn(64, 2)).detach(), zeros)):
            optimizer_d.zero_grad()
            loss_d = criterion(discriminator(samples), label)
            loss_d.backward()
            optimizer_d.step()
        optimizer_g.zero_grad()
        loss_g = criterion(discriminator(generator(torch.randn(len(real), 2))), ones)
        loss_g.backward()
        optimizer_g.step()
    print(f"epoch {epoch}: D {loss_d.item():.4f} G {loss_g.item():.4f}")
