"""The same training with the betas in order."""

import torch
from torch import nn

torch.manual_seed(0)
words, length = 1000, 8
meanings = torch.randn(words, 3)
frequencies = 1 / torch.arange(10, words + 10)
x = torch.multinomial(frequencies, 2048 * length, replacement=True).view(2048, length)
y = meanings[x].sum(1).argmax(1)

model = nn.Sequential(nn.EmbeddingBag(words, 16), nn.Linear(16, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.999))

for epoch in range(8):
    for index in torch.randperm(len(x)).split(16):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
