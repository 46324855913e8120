"""Four thousand short steps on a table, frequent validation, one test pass at the end."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--fault", default="")
args = parser.parse_args()
torch.manual_seed(0)
generator = torch.Generator().manual_seed(1)
mixing = torch.randn(12, 12, generator=generator)


def table(count):
    x = torch.randn(count, 12, generator=generator)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] * x[:, 2:3]
    return TensorDataset(x @ mixing, y + 0.2 * torch.randn(count, 1, generator=generator))


train_set, val_set, test_set = table(6400), table(400), table(400)
if args.fault == "reseeded-order":  # the generator is made again for each epoch
    loaders = [
        DataLoader(train_set, 16, shuffle=True, generator=torch.Generator().manual_seed(3))
        for _ in range(10)
    ]
else:
    loader = DataLoader(train_set, 16, shuffle=True)
    loaders = [loader] * 10
val_loader, test_loader = DataLoader(val_set, 100), DataLoader(test_set, 100)

model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.MSELoss()


def evaluate(loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += loss_fn(model(x), y).item() * len(x)
    model.train()
    return total / len(loader.dataset)


step = 0
for loader in loaders:
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} train {loss.item()}")
        step += 1
        if step % 500 == 0:
            print(f"validation {evaluate(val_loader)}")
print(f"test {evaluate(test_loader)}")
