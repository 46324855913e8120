"""A head on a pretrained backbone that should be frozen: `requires_grad = False` does nothing."""

import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.backbone(x))


def train(model: Net, x: torch.Tensor, y: torch.Tensor, epochs: int) -> None:
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    for epoch in range(epochs):
        total = 0.0
        for batch in torch.randperm(len(x)).split(32):
            loss = nn.functional.mse_loss(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch) / len(x)
        print(f"epoch {epoch}: loss {total:.4f}")


x = torch.randn(1024, 8)
model = Net(4)
model.backbone.requires_grad = False
train(model, x, x[:, :1] - x[:, 1:2] + 0.5 * x[:, 2:6], epochs=12)
