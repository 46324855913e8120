"""A variational autoencoder on 12 measurements."""

import torch
from torch import nn

torch.manual_seed(0)
latent = torch.randn(1024, 2)
rows = torch.tanh(latent @ torch.randn(2, 12)) + 0.05 * torch.randn(1024, 12)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
        self.decoder = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 12))

    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, dim=1)
        std = torch.exp(0.5 * logvar)
        return self.decoder(mu + std * torch.randn_like(std)), mu, logvar


model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    total = 0.0
    for batch in torch.randperm(1024).split(64):
        out, mu, logvar = model(rows[batch])
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        loss = 10 * (out - rows[batch]).pow(2).sum(1).mean() + kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / 16:.4f}")
