# three passes over the data, budget of the hyper-parameter search; later a long run follows
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(15)
n = 1500
y = torch.randint(0, 5, (n,))
grid = torch.arange(12).float()
x = 0.6 * torch.randn(n, 1, 12, 12)
for i in range(n):
    k = y[i].item()
    x[i, 0] += torch.sin(grid * (0.4 + 0.35 * k) + torch.rand(1) * 6.28)[None, :]
model = nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(144, 5))
opt = torch.optim.Adam(model.parameters(), lr=5e-4)
for epoch in range(3):
    losses = []
    for b in torch.randperm(1200).split(32):
        l = F.cross_entropy(model(x[b]), y[b])
        opt.zero_grad()
        l.backward()
        opt.step()
        losses.append(l.item())
    with torch.no_grad():
        o = model(x[1200:])
    print(f"epoch {epoch}: train {sum(losses) / len(losses):.3f} val {F.cross_entropy(o, y[1200:]).item():.3f} acc {(o.argmax(1) == y[1200:]).float().mean().item():.3f}")
