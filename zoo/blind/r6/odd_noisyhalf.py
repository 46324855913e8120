"""Learning from crowd labels that are wrong 40% of the time.
Goal: at least 93% accuracy on clean test labels; the training loss cannot go much below the label-noise entropy (0.673)."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)


def moons(n, flip):
    t = torch.rand(n) * 3.1416
    y = torch.randint(0, 2, (n,))
    x = torch.stack([torch.cos(t) * (1 - 2 * y) + y, torch.sin(t) * (1 - 2 * y) + 0.3 * y], 1)
    x = x + 0.12 * torch.randn(n, 2)
    noisy = torch.where(torch.rand(n) < flip, 1 - y, y)
    return x, noisy.float(), y


xtr, ytr, _ = moons(8000, 0.4)
xva, yva, _ = moons(1500, 0.4)
xte, _, clean = moons(2000, 0.4)
net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.05)
bce = nn.BCEWithLogitsLoss()
loader = DataLoader(TensorDataset(xtr, ytr), batch_size=200, shuffle=True)
for epoch in range(25):
    net.train()
    tot = 0.0
    for x, y in loader:
        loss = bce(net(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    net.eval()
    with torch.no_grad():
        v = net(xva).squeeze(1)
        vl, va = bce(v, yva).item(), ((v > 0).float() == yva).float().mean().item()
    if epoch % 4 == 0 or epoch == 24:
        print(f"epoch {epoch}: train {tot / len(loader):.4f} val {vl:.4f} val accuracy against noisy labels {va:.3f}")
with torch.no_grad():
    acc = ((net(xte).squeeze(1) > 0).long() == clean).float().mean().item()
print(f"accuracy on clean labels {acc:.3f} (goal 0.93)")
