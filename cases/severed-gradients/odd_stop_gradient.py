"""A codebook: its gradient is stopped on purpose, and it is trained by a term of its own."""

import torch
from torch import Tensor, nn
from torch.nn import functional

torch.manual_seed(0)
x = torch.randn(512, 2).repeat_interleave(4, dim=1) + 0.05 * torch.randn(512, 8)


class Quantised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
        self.codes = nn.Embedding(64, 2)
        self.decoder = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z = self.encoder(x)
        nearest = self.codes(torch.cdist(z, self.codes.weight).argmin(dim=1))
        own = (nearest - z.detach()).square().mean() + 0.25 * (z - nearest.detach()).square().mean()
        return self.decoder(z + (nearest - z).detach()), own


model = Quantised()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(40):
    for batch in torch.randperm(512).split(64):
        decoded, own = model(x[batch])
        loss = functional.mse_loss(decoded, x[batch]) + own
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
