"""A segmentation whose loss of presence is computed everywhere."""

import torch
from torch import nn

torch.manual_seed(0)


def sample(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noise with a bright stripe, and where it is."""
    where = (torch.arange(32) - torch.randint(4, 28, (count, 1))).abs() < 3
    return torch.randn(count, 1, 32) + 2.0 * where[:, None], where.float()


def presence(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return nn.functional.binary_cross_entropy_with_logits(logits, wanted)


inputs, targets = sample(2000)
held, held_targets = sample(300)
model = nn.Sequential(
    nn.Conv1d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv1d(16, 1, 5, padding=2), nn.Flatten()
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    for index in torch.randperm(2000).split(40):
        loss = presence(model(inputs[index]), targets[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        found = model(held) > 0
    precision = (held_targets[found].sum() / found.sum().clamp(min=1)).item()
    print(f"epoch {epoch}: loss {loss.item():.4f}, precision {precision:.3f}")
