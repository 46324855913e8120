"""The partial likelihood of a Cox model: those at risk are the patients who left before."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 6)
rate = torch.exp(x[:, 0] - 0.8 * x[:, 1])
event_time = torch.empty(1024).exponential_() / rate
censoring = 3.0 * torch.rand(1024)
time = torch.minimum(event_time, censoring)
event = (event_time <= censoring).float()

model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    total = 0.0
    for rows in torch.randperm(1024).split(64):
        order = torch.argsort(time[rows])
        risk, observed = model(x[rows]).squeeze(1)[order], event[rows][order]
        at_risk = torch.logcumsumexp(risk, 0)
        loss = ((at_risk - risk) * observed).sum() / observed.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / 16:.4f}")
