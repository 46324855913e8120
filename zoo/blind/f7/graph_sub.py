"""Node classification on sampled subgraphs of a stochastic block model with a two-layer GCN."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class BlockGraph:
    def __init__(self, n=600, blocks=4, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, blocks, (n,), generator=g)
        same = self.y.unsqueeze(0) == self.y.unsqueeze(1)
        p = torch.where(same, torch.tensor(0.16), torch.tensor(0.03))
        up = torch.triu(torch.rand(n, n, generator=g) < p, 1)
        self.a = (up | up.t()).float()
        self.x = torch.randn(n, 12, generator=g)
        self.x[:, :blocks] += 0.8 * F.one_hot(self.y, blocks)
        self.g = g

    def sample(self, size):
        idx = torch.randperm(len(self.y), generator=self.g)[:size]
        return self.x[idx], self.a[idx][:, idx], self.y[idx]


def normalise(adj):
    """Symmetric normalisation D^-1/2 A D^-1/2."""
    scale = adj.sum(1).pow(-0.5)
    return scale.unsqueeze(1) * adj * scale.unsqueeze(0)


class GCN(nn.Module):
    def __init__(self, d, classes, hidden=48):
        super().__init__()
        self.l1, self.s1 = nn.Linear(d, hidden), nn.Linear(d, hidden)
        self.l2, self.s2 = nn.Linear(hidden, classes), nn.Linear(hidden, classes)

    def forward(self, x, adj):
        s = normalise(adj)
        h = F.relu(s @ self.l1(x) + self.s1(x))
        return s @ self.l2(h) + self.s2(h)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=450)
    ap.add_argument("--size", type=int, default=170)
    ap.add_argument("--seed", type=int, default=2)
    args = ap.parse_args()
    torch.manual_seed(0)
    graph = BlockGraph(seed=args.seed)
    net = GCN(12, 4)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(args.steps):
        x, adj, y = graph.sample(args.size)
        out = net(x, adj)
        loss = F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} acc {(out.argmax(1) == y).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
