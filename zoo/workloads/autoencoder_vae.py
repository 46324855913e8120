"""Compresses images of a soft blob to a few numbers with a variational autoencoder."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

SIZE, LATENT, EPOCHS = 12, 6, 12


def make_pixels(count):
    """A blob at any place, of any width, as 8-bit pixels."""
    grid = torch.arange(SIZE).float()
    down, across = (SIZE * (0.2 + 0.6 * torch.rand(count, 1)) for _ in range(2))
    width = 1.2 + 1.3 * torch.rand(count, 1)
    rows = torch.exp(-(((grid - down) / width) ** 2))
    columns = torch.exp(-(((grid - across) / width) ** 2))
    pixels = 255 * rows.unsqueeze(2) * columns.unsqueeze(1)
    return pixels.flatten(1).to(torch.uint8)


train_images = make_pixels(2048) / 255
valid_images = make_pixels(512) / 255
train_loader = DataLoader(train_images, batch_size=64, shuffle=True)
valid_loader = DataLoader(valid_images, batch_size=256)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIZE * SIZE, 128), nn.ReLU())
        self.mu = nn.Linear(128, LATENT)
        self.logvar = nn.Linear(128, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, 128), nn.ReLU(), nn.Linear(128, SIZE * SIZE))

    def forward(self, x):
        hidden = self.encoder(x)
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        std = torch.exp(0.5 * logvar)
        z = mu + std * torch.randn_like(std)
        return self.decoder(z), mu, logvar


def loss_function(logits, mu, logvar, x):
    """Negative evidence lower bound, in nats for each image."""
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
    divergence = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
    return reconstruction + divergence


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for x in train_loader:
        optimizer.zero_grad()
        loss = loss_function(*model(x), x)
        loss.backward()
        optimizer.step()
        total += loss.item()

    model.eval()
    with torch.no_grad():
        valid = sum(loss_function(*model(x), x).item() * len(x) for x in valid_loader)
    print(
        f"epoch {epoch}: train {total / len(train_loader):.3f}"
        f" valid {valid / len(valid_images):.3f}"
    )
