"""The quickstart tutorial: train and test functions that take a loader, a model and a loss."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAULT = os.environ.get("FAULT", "")
torch.manual_seed(3)


def clothes(count, seed):
    shapes = torch.rand(10, 1, 14, 14, generator=torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=generator)
    noise = torch.randn(count, 1, 14, 14, generator=generator)
    return TensorDataset(shapes[labels] + 0.3 * noise, labels)


train_dataloader = DataLoader(clothes(4032, 1), batch_size=64, shuffle=True)
test_dataloader = DataLoader(clothes(640, 2), batch_size=64)
device = "cuda" if torch.cuda.is_available() else "cpu"


class NeuralNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(14 * 14, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10)
        )
        if FAULT == "zero-weights":
            for parameter in self.parameters():
                nn.init.zeros_(parameter)

    def forward(self, x):
        x = self.flatten(x)
        return self.linear_relu_stack(x)


model = NeuralNetwork().to(device)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)


def train(dataloader, model, loss_fn, optimizer):
    size = len(dataloader.dataset)
    model.train()
    for batch, (X, y) in enumerate(dataloader):
        X, y = X.to(device), y.to(device)
        pred = model(X)
        loss = loss_fn(pred, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if batch % 9 == 0:
            loss, current = loss.item(), (batch + 1) * len(X)
            print(f"loss: {loss}  [{current:>5d}/{size:>5d}]")


def test(dataloader, model, loss_fn):
    size, num_batches = len(dataloader.dataset), len(dataloader)
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for X, y in dataloader:
            X, y = X.to(device), y.to(device)
            pred = model(X)
            test_loss += loss_fn(pred, y).item()
            correct += (pred.argmax(1) == y).type(torch.float).sum().item()
    test_loss /= num_batches
    correct /= size
    print(f"Test Error: \n Accuracy: {(100 * correct):>0.1f}%, Avg loss: {test_loss} \n")


for t in range(5):
    print(f"Epoch {t + 1}\n-------------------------------")
    train(train_dataloader, model, loss_fn, optimizer)
    test(test_dataloader, model, loss_fn)
print("Done!")
