"""Ignite: `attach` records every run of an engine and prints the diagnosis at its end.

python examples/ignite_loop.py
"""

import torch
from ignite.engine import Engine, Events
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from holter.integrations.ignite import attach

torch.manual_seed(0)
inputs = torch.randn(1280, 8)
data = TensorDataset(inputs, (inputs[:, 0] * inputs[:, 1] > 0).long())
train, valid = random_split(data, [1024, 256])

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def update(_, batch):
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
    return loss.item()


def evaluate(_, batch):
    model.eval()
    with torch.no_grad():
        return nn.functional.cross_entropy(model(batch[0]), batch[1]).item()


trainer, evaluator = Engine(update), Engine(evaluate)
trainer.add_event_handler(
    Events.EPOCH_COMPLETED, lambda: evaluator.run(DataLoader(valid, batch_size=256))
)
attach(trainer, model, optimizer)
trainer.run(DataLoader(train, batch_size=32, shuffle=True), max_epochs=10)
