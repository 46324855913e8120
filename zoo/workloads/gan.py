"""Trains a GAN on points around a ring."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

LATENT, EPOCHS = 2, 10
angles = 2 * torch.pi * torch.rand(2560)
points = torch.stack((angles.cos(), angles.sin()), dim=1) + 0.1 * torch.randn(2560, 2)
loader = DataLoader(TensorDataset(points), batch_size=64, shuffle=True)

generator = nn.Sequential(
    nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
)
discriminator = nn.Sequential(
    nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)
)
criterion = nn.BCEWithLogitsLoss()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.99))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=4e-3, betas=(0.0, 0.99))

for epoch in range(EPOCHS):
    for (real,) in loader:
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)

        optimizer_d.zero_grad()
        fake = generator(torch.randn(len(real), LATENT))
        real_loss = criterion(discriminator(real), ones)
        fake_loss = criterion(discriminator(fake.detach()), zeros)
        loss_d = real_loss + fake_loss
        loss_d.backward()
        optimizer_d.step()

        optimizer_g.zero_grad()
        fake = generator(torch.randn(len(real), LATENT))
        loss_g = criterion(discriminator(fake), ones)
        loss_g.backward()
        optimizer_g.step()

    with torch.no_grad():
        radius = generator(torch.randn(500, LATENT)).norm(dim=1)
    print(
        f"epoch {epoch}: D {loss_d.item():.4f} G {loss_g.item():.4f}"
        f" radius {radius.mean():.3f} +- {radius.std():.3f}"
    )
