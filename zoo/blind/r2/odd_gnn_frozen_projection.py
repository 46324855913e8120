"""Node classification with a fixed random projection and only the readout trained (an echo-state graph network)."""
import torch
from torch import nn


class GraphESN(nn.Module):
    def __init__(self, d, h, classes, hops):
        super().__init__()
        self.inp = nn.Linear(d, h)
        self.rec = nn.Linear(h, h, bias=False)
        nn.init.orthogonal_(self.rec.weight, gain=0.9)
        for p in list(self.inp.parameters()) + list(self.rec.parameters()):
            p.requires_grad_(False)
        self.readout = nn.Linear(h, classes)
        self.hops = hops

    def states(self, x, adj):
        h = torch.tanh(self.inp(x))
        for _ in range(self.hops):
            h = torch.tanh(self.inp(x) + self.rec(adj @ h))
        return h

    def forward(self, x, adj):
        return self.readout(self.states(x, adj))


def main():
    torch.manual_seed(6)
    n, c = 300, 3
    y = torch.randint(0, c, (n,))
    x = torch.randn(n, 16) + 0.7 * torch.randn(c, 16)[y]
    p = torch.where(y[:, None] == y[None], 0.05, 0.008)
    up = torch.triu((torch.rand(n, n) < p).float(), 1)
    adj = up + up.T
    adj = adj / adj.sum(1, keepdim=True).clamp(min=1)
    tr, te = torch.arange(0, 90), torch.arange(90, n)
    net = GraphESN(16, 64, c, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-3)
    for epoch in range(100):
        loss = nn.functional.cross_entropy(net(x, adj)[tr], y[tr])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch % 10 == 9:
            with torch.no_grad():
                acc = (net(x, adj).argmax(1) == y)[te].float().mean()
            print(f"{epoch + 1:3d} loss {loss.item():.4f} test acc {acc:.3f}")


main()
