"""Federated averaging: each client starts from the averaged weights with a new optimizer."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = torch.sin(2 * x[:, :1]) + 0.5 * x[:, 1:2] + 0.1 * torch.randn(1024, 1)
clients = torch.arange(len(x)).chunk(4)

model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
criterion = nn.MSELoss()
server = copy.deepcopy(model.state_dict())

for turn in range(12):
    trained = []
    for client in clients:
        model.load_state_dict(server)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for index in client[torch.randperm(len(client))].split(32):
            optimizer.zero_grad()
            loss = criterion(model(x[index]), y[index])
            loss.backward()
            optimizer.step()
        trained.append(copy.deepcopy(model.state_dict()))
    server = {name: torch.stack([state[name] for state in trained]).mean(0) for name in server}
    print(f"round {turn}: loss {loss.item():.4f}")
