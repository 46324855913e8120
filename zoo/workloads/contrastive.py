"""Learns representations from pairs of views, with an in-batch contrastive loss."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

FEATURES, BATCH, TEMPERATURE, EPOCHS = 48, 64, 0.2, 12
things = torch.randn(2304, 10) @ torch.randn(10, FEATURES)
things = things / things.std()
train_loader = DataLoader(
    TensorDataset(things[:2048]), batch_size=BATCH, shuffle=True, drop_last=True
)
valid_loader = DataLoader(TensorDataset(things[2048:]), batch_size=BATCH)


def view(x):
    kept = torch.rand_like(x) > 0.3
    return x * kept + 0.3 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, 96), nn.ReLU(), nn.Linear(96, 64), nn.ReLU())
        self.projection = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        return F.normalize(self.projection(self.body(x)), dim=1)


def contrast(first, second):
    """Each view has to find its twin among all other views of the batch."""
    z = torch.cat((first, second))
    similarity = z @ z.T / TEMPERATURE
    similarity = similarity.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    twin = torch.arange(len(z)).roll(len(first))
    return F.cross_entropy(similarity, twin)


model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(EPOCHS):
    model.train()
    train_loss = 0.0
    for (x,) in train_loader:
        loss = contrast(model(view(x)), model(view(x)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)

    model.eval()
    valid_loss = 0.0
    with torch.no_grad():
        for (x,) in valid_loader:
            valid_loss += contrast(model(view(x)), model(view(x))).item() / len(valid_loader)
    print(f"epoch {epoch}: train {train_loss:.4f} valid {valid_loss:.4f}")
