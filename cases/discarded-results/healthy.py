"""A reader over time that hands its state on to the next step."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 5, 4)
y = x[:, 0, :1] - x[:, 1, 1:2]


class Cell(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.gru = nn.GRUCell(4, size)
        self.head = nn.Linear(size, 1)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.gru(x, h)
        return self.head(h), h


class Reader(nn.Module):
    def __init__(self, size: int = 32) -> None:
        super().__init__()
        self.size = size
        self.cell = Cell(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.new_zeros(len(x), self.size)
        for t in range(x.shape[1]):
            out, h = self.cell(x[:, t], h)
        return out


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(25):
    total = 0.0
    for batch in torch.randperm(512).split(64):
        loss = nn.functional.mse_loss(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / 8:.4f}")
