"""Inputs of 1e-9 (metres) and targets of 1e11; scaling sits inside the model, loss is relative."""
import torch
import torch.nn as nn

torch.manual_seed(14)
n = 6000
size = torch.rand(n, 2) * 9e-9 + 1e-9
charge = torch.rand(n, 1) * 4 + 1
field = charge / (size.mean(1, keepdim=True) * 1e9) ** 2 * (1 + 0.3 * torch.sin(size[:, :1] * 3e8)) * 1e11


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, s, q):
        z = torch.cat([(s * 1e9).log(), q.log()], 1)
        return self.f(z).exp() * 1e11


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
sch = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 20)
for ep in range(20):
    perm = torch.randperm(5000)
    for i in range(0, 5000, 100):
        j = perm[i:i + 100]
        p = net(size[j], charge[j])
        loss = ((p - field[j]) / field[j]).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    sch.step()
    with torch.no_grad():
        p = net(size[5000:], charge[5000:])
        rel = ((p - field[5000:]).abs() / field[5000:]).mean().item()
        mae = (p - field[5000:]).abs().mean().item()
    if ep % 2 == 1:
        print(f"epoch {ep} train rel {loss.item():.4f} val rel err {rel:.4f} val mae {mae:.3e} (field std {field.std().item():.2e})")
