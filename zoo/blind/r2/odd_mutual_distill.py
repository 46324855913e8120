"""Deep mutual learning: two students, each imitates the other's detached prediction; no fixed teacher."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(37)
g = torch.Generator().manual_seed(37)
cent = torch.randn(5, 12, generator=g)


def draw(n):
    y = torch.randint(0, 5, (n,), generator=g)
    return cent[y] + 0.9 * torch.randn(n, 12, generator=g), y


x, y = draw(400)
xt, yt = draw(600)
peers = nn.ModuleList([
    nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5)),
    nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 5)),
])
opts = [torch.optim.Adam(p.parameters(), lr=3e-3) for p in peers]
for epoch in range(14):
    sums = [0.0, 0.0]
    for idx in torch.randperm(400).split(20):
        logits = [p(x[idx]) for p in peers]
        for k in (0, 1):
            other = F.log_softmax(logits[1 - k].detach(), -1)
            ce = F.cross_entropy(logits[k], y[idx])
            kl = F.kl_div(F.log_softmax(logits[k], -1), other, reduction="batchmean", log_target=True)
            opts[k].zero_grad()
            (ce + kl).backward()
            opts[k].step()
            sums[k] += (ce + kl).item() / 20
    if epoch % 2:
        with torch.no_grad():
            acc = [(p(xt).argmax(1) == yt).float().mean().item() for p in peers]
        print("epoch", epoch + 1, "losses %.3f %.3f" % tuple(sums), "test %.3f %.3f" % tuple(acc))
