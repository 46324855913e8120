"""Adam on float16 weights: its eps of 1e-8 rounds to 0, and a word not seen divides 0 by 0."""

import torch
from torch import nn

torch.manual_seed(0)
words = torch.randint(0, 200, (512, 12))
labels = (words < 100).float().mean(dim=1).gt(0.5).long()

model = nn.Sequential(nn.EmbeddingBag(200, 16), nn.Linear(16, 2)).half()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for _ in range(8):
    for batch in torch.randperm(512).split(64):
        loss = nn.functional.cross_entropy(model(words[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
