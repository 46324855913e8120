import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(55)
EPS = 1e-6


class Retriever(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(15, 48, bias=False), nn.ReLU(), nn.Linear(48, 12, bias=False))

    def forward(self, x):
        z = self.enc(x)
        return z / (z.pow(2).sum(1, keepdim=True) + EPS).sqrt()


def soft_targets(y, n):
    t = F.one_hot(y, n).float()
    return 0.98 * t + 0.02 * t.roll(1, 1)


model = Retriever()
centers = nn.Parameter(torch.randn(5, 12))
opt = torch.optim.Adam(list(model.parameters()) + [centers], lr=4e-3)
protos = 1.5 * torch.randn(5, 15)
for step in range(300):
    y = torch.randint(0, 5, (40,))
    x = protos[y] + 0.6 * torch.randn(40, 15)
    x[torch.rand(40) < 0.03] = 0.0
    p = F.softmax(30.0 * model(x) @ F.normalize(centers, dim=1).t(), dim=1)
    t = soft_targets(y, 5)
    loss = (t * (torch.log(t.clamp(min=EPS)) - torch.log(p.clamp(min=EPS)))).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 0:
        print(f"step {step} kl {loss.item():.4f} min p {p.min().item():.2e}")
