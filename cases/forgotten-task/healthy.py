"""The same, with samples of the old classes among the new ones."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

import holter

torch.manual_seed(0)
centres = 1.5 * torch.randn(6, 12)


def samples(labels, count):
    y = labels[torch.randint(len(labels), (count,))]
    return TensorDataset(centres[y] + torch.randn(count, 12), y)


old_set, old_test = samples(torch.arange(3), 1500), samples(torch.arange(3), 300)
new_set = samples(torch.arange(3, 6), 1500)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 6))


def train(dataset, optimizer, epochs):
    for _ in range(epochs):
        for inputs, targets in DataLoader(dataset, batch_size=32, shuffle=True):
            loss = functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


train(old_set, torch.optim.Adam(model.parameters(), lr=2e-3), 4)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
with holter.watch(model, optimizer, "run", also={"old classes": DataLoader(old_test, 100)}):
    train(ConcatDataset([new_set, old_set]), optimizer, 4)
