"""A variational autoencoder whose loss is the reconstruction alone: the divergence is unused."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
causes = torch.randn(1024, 2)
x = torch.tanh(causes @ torch.randn(2, 12)) + 0.1 * torch.randn(1024, 12)
loader = DataLoader(TensorDataset(x), batch_size=32, shuffle=True)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 32), nn.ReLU())
        self.mean, self.spread = nn.Linear(32, 2), nn.Linear(32, 2)
        self.decoder = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 12))

    def forward(self, x):
        hidden = self.body(x)
        mu, logvar = self.mean(hidden), self.spread(hidden)
        std = torch.exp(0.5 * logvar)
        latent = mu + torch.randn_like(std) * std
        return self.decoder(latent), mu, logvar


model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    total = 0.0
    for (inputs,) in loader:
        outputs, mu, logvar = model(inputs)
        divergence = 0.5 * (mu**2 + logvar.exp() - 1.0 - logvar).sum(1).mean()
        loss = nn.functional.mse_loss(outputs, inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
