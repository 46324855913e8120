"""Sparse mixture of experts, top-1 routing."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
E = 4


class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(2, E)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1)) for _ in range(E))

    def forward(self, x):
        prob = F.softmax(self.gate(x), -1)
        weight, choice = prob.max(-1)
        out = x.new_zeros(len(x), 1)
        for e, expert in enumerate(self.experts):
            rows = (choice == e).nonzero().squeeze(1)
            if len(rows) == 0:
                continue
            out[rows] = weight[rows, None] * expert(x[rows])
        share = F.one_hot(choice, E).float().mean(0)
        return out, E * (share * prob.mean(0)).sum(), share


def target(x):
    return torch.where(x[:, :1] > 0, torch.sin(3 * x[:, 1:]), 2 * x[:, :1] * x[:, 1:])


model = MoE()
opt = torch.optim.Adam(model.parameters(), lr=6e-3)
for step in range(1, 301):
    x = torch.rand(12, 2) * 2 - 1
    y, balance, share = model(x)
    mse = F.mse_loss(y, target(x))
    loss = mse + 0.1 * balance
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 30 == 0:
        print(f"step {step} mse {mse.item():.4f} balance {balance.item():.3f} used {int((share > 0).sum())}/{E}")
with torch.no_grad():
    x = torch.rand(1000, 2) * 2 - 1
    y, _, share = model(x)
    print(f"test mse {F.mse_loss(y, target(x)):.4f} (variance {target(x).var():.3f}) shares {[round(s, 2) for s in share.tolist()]}")
