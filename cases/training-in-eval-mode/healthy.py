"""Each epoch begins with `model.train()`, whatever the validation did before."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(640, 12)
y = (x[:, 0] > 0).long() + (x[:, 1] + x[:, 2] > 0).long()
train_x, train_y, test_x, test_y = x[:512], y[:512], x[512:], y[512:]

model = nn.Sequential(
    nn.Linear(12, 64),
    nn.BatchNorm1d(64),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(64, 3),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def evaluate() -> float:
    model.eval()
    with torch.no_grad():
        return criterion(model(test_x), test_y).item()


for epoch in range(10):
    model.train()
    for index in torch.randperm(len(train_x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(train_x[index]), train_y[index])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}, validation {evaluate():.4f}")
