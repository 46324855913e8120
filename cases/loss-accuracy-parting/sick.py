"""Two tasks share a loss: one is learned; the labels of the other belong to other rows."""

import torch
from torch import nn

torch.manual_seed(0)
rows = torch.randn(30000, 8) @ torch.randn(8, 24) / 3
labels = rows[:, :8].sum(1).argsort().argsort() * 4 // len(rows)  # four classes of one size
labels = labels[torch.randperm(len(labels))]  # put in another order, without the rows

encoder = nn.Sequential(nn.Linear(24, 32), nn.Tanh())
decoder = nn.Linear(32, 24)
head = nn.Linear(32, 4)
model = nn.ModuleDict({"encoder": encoder, "decoder": decoder, "head": head})
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(2):
    for index in torch.randperm(len(rows)).split(256):
        hidden = encoder(rows[index])
        rebuilt = nn.functional.mse_loss(decoder(hidden), rows[index])
        named = nn.functional.cross_entropy(head(hidden), labels[index])
        loss = 10 * rebuilt + named
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
