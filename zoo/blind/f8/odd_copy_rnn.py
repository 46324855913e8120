"""Adding problem with a ReLU recurrent network started from the identity."""
import torch
import torch.nn as nn

LENGTH = 40


def adding(n, g):
    v = torch.rand(n, LENGTH, generator=g)
    m = torch.zeros(n, LENGTH)
    a = torch.randint(0, LENGTH // 2, (n,), generator=g)
    b = torch.randint(LENGTH // 2, LENGTH, (n,), generator=g)
    m[torch.arange(n), a] = 1
    m[torch.arange(n), b] = 1
    return torch.stack([v, m], -1), (v * m).sum(1)


class IRNN(nn.Module):
    def __init__(self, h=40):
        super().__init__()
        self.inp = nn.Linear(2, h)
        self.rec = nn.Linear(h, h, bias=False)
        self.out = nn.Linear(h, 1)
        with torch.no_grad():
            self.rec.weight.copy_(torch.eye(h) * 1.03)
            self.inp.weight.mul_(0.1)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.rec.in_features)
        for t in range(x.shape[1]):
            h = torch.relu(self.inp(x[:, t]) + self.rec(h))
        return self.out(h).squeeze(1)


def describe(model):
    total = sum(p.numel() for p in model.parameters())
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"parameters {total} trainable {trainable}")


def main():
    torch.manual_seed(44)
    g = torch.Generator().manual_seed(44)
    net = IRNN()
    describe(net)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    peak = 0.0
    for step in range(350):
        x, y = adding(32, g)
        loss = (net(x) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        peak = max(peak, norm.item())
        opt.step()
        if step % 20 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} grad-norm {norm.item():.2f} peak {peak:.1f}")


if __name__ == "__main__":
    main()


# The reference run uses sequences of 150 steps; forty are enough to compare
# the two initialisations on a laptop.
