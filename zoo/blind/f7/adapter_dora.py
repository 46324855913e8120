"""Adapter tuning with separate direction and magnitude, plus neuron pruning half-way."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DirectionAdapter(nn.Module):
    def __init__(self, base: nn.Linear, rank=4):
        super().__init__()
        self.weight = nn.Parameter(base.weight.detach().clone(), requires_grad=False)
        self.bias = nn.Parameter(base.bias.detach().clone())
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features ** 0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.mag = nn.Parameter(self.weight.norm(dim=1))

    def forward(self, x):
        w = self.weight + self.up @ self.down
        w = self.mag.unsqueeze(1) * w / w.norm(dim=1, keepdim=True)
        return F.linear(x, w, self.bias)

    @torch.no_grad()
    def prune(self, fraction):
        score = self.mag.abs()
        k = int(fraction * score.numel())
        drop = score.topk(k, largest=False).indices
        self.weight[drop] = 0
        self.up[drop] = 0
        self.mag[drop] = 0
        return k


def task_data(n, seed, shift):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 20, generator=g)
    w = torch.randn(20, 5, generator=torch.Generator().manual_seed(99))
    return x, (torch.tanh(x @ w + shift * x[:, :5])).argmax(1)


def build(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))


def fit(net, params, data, steps, lr, prune_at=None, tag=""):
    opt = torch.optim.Adam(params, lr=lr)
    x, y = data
    for step in range(steps):
        idx = torch.randint(0, len(x), (64,))
        loss = F.cross_entropy(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if prune_at is not None and step == prune_at:
            removed = sum(m.prune(0.2) for m in net if isinstance(m, DirectionAdapter))
            print(f"{tag} removed {removed} neurons")
        if step % 25 == 0:
            print(f"{tag} step {step} loss {loss.item():.4f}")


def main():
    net = build()
    fit(net, net.parameters(), task_data(4000, 1, 0.0), 200, 2e-3, tag="base")
    for i in (0, 2):
        net[i] = DirectionAdapter(net[i])
    for p in net[4].parameters():
        p.requires_grad_(False)
    fit(net, [p for p in net.parameters() if p.requires_grad], task_data(4000, 2, 1.0), 300, 2e-3, prune_at=160, tag="adapt")


if __name__ == "__main__":
    main()
