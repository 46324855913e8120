import torch
from torch import nn


class RMS(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.g = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return self.g * x / x.pow(2).mean(-1, keepdim=True).sqrt()


class Block(nn.Module):
    def __init__(self, n, inner):
        super().__init__()
        self.norm = RMS(n)
        self.up = nn.Linear(n, inner)
        self.drop = nn.Dropout(0.0)
        self.mid = RMS(inner)
        self.down = nn.Linear(inner, n)

    def forward(self, x):
        h = self.drop(torch.relu(self.up(self.norm(x))))
        return x + self.down(self.mid(h))


class Model(nn.Module):
    def __init__(self, d_in=8, n=24, inner=12, depth=6):
        super().__init__()
        self.stem = nn.Linear(d_in, n)
        self.blocks = nn.ModuleList(Block(n, inner) for _ in range(depth))
        self.head = nn.Linear(n, 3)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = b(x)
        return self.head(x)


def batches(steps, size, seed):
    g = torch.Generator().manual_seed(seed)
    W = torch.randn(8, 3, generator=g)
    for _ in range(steps):
        x = torch.randn(size, 8, generator=g)
        yield x, (x @ W + 0.5 * torch.sin(3 * x[:, :3])).argmax(1)


def train(lr=2e-3, wd=0.05):
    torch.manual_seed(0)
    model = Model()
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": wd}, {"params": plain, "weight_decay": 0.0}], lr=lr)
    ok = 0.0
    for step, (x, y) in enumerate(batches(350, 32, 0)):
        for b in model.blocks:
            b.drop.p = min(0.5, max(0, step - 80) / 500)
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        ok = 0.95 * ok + 0.05 * (out.argmax(1) == y).float().mean().item()
        if step % 35 == 0:
            print(f"step {step} loss {loss.item():.4f} acc(ema) {ok:.3f}")


if __name__ == "__main__":
    train()
