# Forty labelled curves, seen eighty times; frozen random features, ridge-like head, big fresh validation set.
import torch
import torch.nn as nn

torch.manual_seed(10)
t = torch.linspace(0, 1, 64)


def curves(n, gen):
    y = torch.randint(0, 2, (n,), generator=gen)
    f = torch.where(y == 0, 3.0, 5.0)[:, None] + 0.3 * torch.randn(n, 1, generator=gen)
    ph = 0.5 * torch.rand(n, 1, generator=gen)
    return torch.sin(6.283 * (f * t + ph)) + 0.5 * torch.randn(n, 64, generator=gen), y


x, y = curves(40, torch.Generator().manual_seed(0))
xv, yv = curves(1000, torch.Generator().manual_seed(1))


def feats(x):
    return torch.log1p(torch.fft.rfft(x).abs()[:, 1:16])


m, s = feats(x).mean(0), feats(x).std(0)
head = nn.Linear(15, 2)
opt = torch.optim.SGD(head.parameters(), lr=0.05, momentum=0.9, weight_decay=0.02)
for epoch in range(80):
    order = torch.randperm(40)
    run = 0.0
    for i in range(0, 40, 10):
        j = order[i:i + 10]
        loss = nn.functional.cross_entropy(head((feats(x[j]) - m) / s), y[j])
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item() / 4
    if epoch % 10 == 9:
        with torch.no_grad():
            o = head((feats(xv) - m) / s)
            a = head((feats(x) - m) / s)
        print(f"pass {epoch + 1} train loss {run:.4f} acc {(a.argmax(1) == y).float().mean():.3f} | val loss {nn.functional.cross_entropy(o, yv):.4f} acc {(o.argmax(1) == yv).float().mean():.3f}")
