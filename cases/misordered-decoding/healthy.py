"""A recogniser of sequences by CTC, whose decoding merges repeats before it removes blanks."""

import torch
from torch import nn

torch.manual_seed(0)
BLANK, SYMBOLS = 0, 6
shapes = torch.randn(SYMBOLS + 1, 8)
shapes[BLANK] = 0.0


def sample(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Six symbols of two frames each, with a pause after each."""
    symbols = torch.randint(1, SYMBOLS + 1, (count, 6))
    frames = torch.stack([symbols, symbols, torch.zeros_like(symbols)], 2).flatten(1)
    return shapes[frames] + 0.4 * torch.randn(count, 18, 8), symbols


def decoded(scores: torch.Tensor) -> list[list[int]]:
    found = []
    for ids in scores.argmax(-1):
        merged = torch.unique_consecutive(ids)
        text = merged[merged != BLANK]
        found.append(text.tolist())
    return found


model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, SYMBOLS + 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
lengths, wanted = torch.full((40,), 18), torch.full((40,), 6)
held, held_symbols = sample(200)
for epoch in range(5):
    for _ in range(40):
        inputs, symbols = sample(40)
        scores = model(inputs).log_softmax(-1)
        loss = nn.functional.ctc_loss(scores.transpose(0, 1), symbols, lengths, wanted, BLANK)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        texts = decoded(model(held))
    exact = sum(text == row for text, row in zip(texts, held_symbols.tolist(), strict=True))
    print(f"epoch {epoch}: loss {loss.item():.4f}, exact {exact / 200:.3f}")
