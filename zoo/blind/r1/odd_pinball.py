import torch
import torch.nn as nn

torch.manual_seed(32)
qs = torch.tensor([0.05, 0.5, 0.95])
x = torch.rand(3000, 1) * 6
y = torch.sin(x) * 2 + (0.2 + 0.3 * x) * torch.randn(3000, 1)
net = nn.Sequential(nn.Linear(1, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))


def pinball(pred, target):
    d = target - pred                       # (n, 3) against (n, 1): one column per quantile
    return torch.maximum(qs * d, (qs - 1) * d).mean()


opt = torch.optim.NAdam(net.parameters(), lr=2e-3)
for ep in range(8):
    for b in torch.randperm(2500).split(64):
        loss = pinball(net(x[b]), y[b])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        p = net(x[2500:])
        cover = (y[2500:] <= p).float().mean(0).tolist()
        print("epoch %d pinball %.4f coverage %s" % (ep, pinball(p, y[2500:]).item(), ["%.2f" % c for c in cover]))
