import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Adapter(nn.Module):
    """x + up(act(down(x))) after a frozen block; down starts at zero, up is random; LayerNorm gains and all biases train too."""

    def __init__(self, d, r):
        super().__init__()
        self.down = nn.Linear(d, r, bias=False)
        self.up = nn.Linear(r, d, bias=False)
        nn.init.zeros_(self.down.weight)

    def forward(self, h):
        return h + self.up(self.down(h))


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(d), nn.Linear(d, d)
        self.adapter = nn.Identity()

    def forward(self, h):
        return self.adapter(h + F.gelu(self.fc(self.norm(h))))


def build(d=32, depth=3):
    return nn.Sequential(nn.Linear(10, d), *[Block(d) for _ in range(depth)], nn.Linear(d, 4))


def data(n, w, g):
    x = torch.randn(n, 10, generator=g)
    return x, (torch.tanh(x) @ w).argmax(1)


def run_steps(net, params, x, y, steps, lr):
    opt = torch.optim.Adam(params, lr=lr)
    for _ in range(steps):
        i = torch.randint(0, len(x), (64,))
        loss = F.cross_entropy(net(x[i]), y[i])
        opt.zero_grad(); loss.backward(); opt.step()
    return loss.item()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--rank", type=int, default=4)
    a = p.parse_args()
    torch.manual_seed(47)
    g = torch.Generator().manual_seed(47)
    w = torch.randn(10, 4, generator=g)
    xs, ys = data(2500, w, g)
    w2 = w[:, [1, 2, 3, 0]] + 0.3 * torch.randn(10, 4, generator=g)
    xt, yt = data(1000, w2, g)
    xv, yv = data(500, w2, g)
    net = build()
    print("source loss %.3f" % run_steps(net, net.parameters(), xs, ys, 160, 5e-3))
    net.requires_grad_(False)
    for m in net:
        if isinstance(m, Block):
            m.adapter = Adapter(32, a.rank)
    for n, q in net.named_parameters():
        q.requires_grad_("adapter" in n or n.endswith("bias") or "norm" in n)
    train = [q for q in net.parameters() if q.requires_grad]
    print("share trained %.3f" % (sum(q.numel() for q in train) / sum(q.numel() for q in net.parameters())))
    with torch.no_grad():
        print("before: target acc %.3f" % (net(xv).argmax(1) == yv).float().mean())
    for rnd in range(6):
        l = run_steps(net, train, xt, yt, 50, 8e-3)
        with torch.no_grad():
            print(f"round {rnd} loss {l:.3f} target acc {(net(xv).argmax(1) == yv).float().mean():.3f}")
