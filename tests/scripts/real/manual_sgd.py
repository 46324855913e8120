"""Logistic regression and a hidden layer with the update written by hand."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fault", default="")
args = parser.parse_args()

torch.manual_seed(42)
centers = torch.randn(4, 10) * 1.5
y_train = torch.randint(0, 4, (1000,))
x_train = centers[y_train] + torch.randn(1000, 10)
y_valid = torch.randint(0, 4, (200,))
x_valid = centers[y_valid] + torch.randn(200, 10)


class MnistLogistic(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(10, 32)
        self.lin = nn.Linear(32, 4)

    def forward(self, xb):
        return self.lin(F.relu(self.hidden(xb)))


model = MnistLogistic()
loss_func = F.cross_entropy
lr = 30.0 if args.fault == "rate-too-high" else 0.1
bs, epochs, n = 50, 15, 1000

for epoch in range(epochs):
    model.train()
    for i in range((n - 1) // bs + 1):
        xb = x_train[i * bs : i * bs + bs]
        yb = y_train[i * bs : i * bs + bs]
        pred = model(xb)
        loss = loss_func(pred, yb)
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= lr * p.grad
            model.zero_grad()
        print(f"step {epoch * 20 + i} loss {loss.item()}")
    model.eval()
    with torch.no_grad():
        valid_loss = loss_func(model(x_valid), y_valid)
    print(epoch, "valid", valid_loss.item())
