"""45 % of the training labels are replaced at random; generalised cross entropy. Training accuracy must stay near 0.6, validation (clean) is high."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(5)
K, D = 6, 16
centre = torch.randn(K, D) * 0.9


def data(n, noisy):
    y = torch.randint(0, K, (n,))
    x = centre[y] + 0.8 * torch.randn(n, D)
    shown = torch.where(torch.rand(n) < 0.45, torch.randint(0, K, (n,)), y) if noisy else y
    return x, shown


def gce(logits, y, q=0.7):
    p = F.softmax(logits, 1).gather(1, y[:, None]).squeeze(1)
    return ((1 - p.clamp_min(1e-6) ** q) / q).mean()


x_tr, y_tr = data(4000, noisy=True)
x_va, y_va = data(1500, noisy=False)
net = nn.Sequential(nn.Linear(D, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, K))
opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-3)
for epoch in range(15):
    net.train()
    run, hit = 0.0, 0
    for idx in torch.randperm(len(x_tr)).split(100):
        out = net(x_tr[idx])
        loss = gce(out, y_tr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item() * len(idx)
        hit += (out.argmax(1) == y_tr[idx]).sum().item()
    net.eval()
    with torch.no_grad():
        acc = (net(x_va).argmax(1) == y_va).float().mean()
    print(f"epoch {epoch:2d} train gce {run / len(x_tr):.4f} acc on noisy labels {hit / len(x_tr):.3f} | clean val acc {acc:.3f}")
