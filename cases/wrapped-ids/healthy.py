"""A language model of 400 words whose ids are stored in two bytes."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
torch.manual_seed(0)
WORDS = 400


def texts(count: int) -> torch.Tensor:
    """Sequences in which each word leads to one of two others."""
    words = [rng.integers(WORDS, size=count)]
    for _ in range(15):
        words.append((3 * words[-1] + rng.integers(2, size=count)) % WORDS)
    return torch.from_numpy(np.stack(words, 1).astype(np.int16)).long()


train, held = texts(3000), texts(300)
model = nn.Sequential(nn.Embedding(WORDS, 48), nn.Linear(48, 96), nn.ReLU(), nn.Linear(96, WORDS))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(6):
    model.train()
    for index in torch.randperm(len(train)).split(60):
        batch = train[index]
        logits = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = model(held[:, :-1])
        validation = nn.functional.cross_entropy(logits.flatten(0, 1), held[:, 1:].flatten())
    print(f"epoch {epoch}: loss {loss.item():.4f}, validation {validation.item():.4f}")
