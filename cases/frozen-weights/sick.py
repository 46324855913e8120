"""The filter that is to freeze the embedding freezes every weight."""

import torch
from torch import nn

torch.manual_seed(0)
words = torch.randint(50, (512, 12))
labels = (words < 25).sum(1).clamp(4, 7) - 4

model = nn.Sequential(nn.EmbeddingBag(50, 16), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
for name, parameter in model.named_parameters():
    if name.endswith("weight"):
        parameter.requires_grad = False
trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
optimizer = torch.optim.Adam(trained, lr=0.01)
for _ in range(12):
    for batch in torch.randperm(512).split(64):
        loss = nn.functional.cross_entropy(model(words[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
