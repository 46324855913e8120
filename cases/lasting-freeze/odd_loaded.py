"""The optimizer is made before the pretrained encoder is loaded and frozen for good."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
features = torch.stack([x[:, 0] * x[:, 1], x[:, 2] * x[:, 3], x[:, 4]], dim=1)
y = (features[:, 0] > 0).long()


def network(outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, outputs))


def train(model: nn.Module, loss_of: nn.Module, targets: torch.Tensor, epochs: int) -> None:
    for _ in range(epochs):
        for batch in torch.randperm(512).split(64):
            loss = loss_of(model(x[batch]), targets[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


pretrained = network(3)
optimizer = torch.optim.Adam(pretrained.parameters(), lr=0.01)
train(pretrained, nn.MSELoss(), features, 30)

encoder = network(3)
model = nn.Sequential(encoder, nn.Linear(3, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
encoder.load_state_dict(pretrained.state_dict())
encoder.requires_grad_(False)
train(model, nn.CrossEntropyLoss(), y, 30)
