"""The chosen expert is multiplied by its probability, so that the router gets a gradient."""

import torch
from torch import Tensor, nn
from torch.nn import functional

torch.manual_seed(0)
x = torch.randn(512, 8)
y = torch.where(x[:, 0] > 0, x[:, 1] > 0, x[:, 2] > 0).long()


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(8, 2)
        self.experts = nn.ModuleList(nn.Linear(8, 2) for _ in range(2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        gates = self.router(x).softmax(dim=1)
        chosen = gates.argmax(dim=1)
        results = torch.stack([expert(x) for expert in self.experts], dim=1)
        share = functional.one_hot(chosen, 2).float().mean(dim=0)
        balance = 2 * (share * gates.mean(dim=0)).sum()
        rows = torch.arange(len(x))
        return gates[rows, chosen, None] * results[rows, chosen], balance


model = Experts()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(30):
    for batch in torch.randperm(512).split(64):
        scores, balance = model(x[batch])
        loss = functional.cross_entropy(scores, y[batch]) + 0.01 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
