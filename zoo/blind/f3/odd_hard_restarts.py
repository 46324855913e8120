import torch
import torch.nn as nn

torch.manual_seed(3)
x = torch.randn(2000, 12)
t = torch.randn(12, 5)
y = (torch.relu(x @ t) @ torch.randn(5, 4)).argmax(1)
net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=80, eta_min=1e-3)
recent = []
for step in range(400):
    idx = torch.randint(0, 2000, (64,))
    loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    recent.append(loss.item())
    if step % 20 == 19:
        print(f"step {step + 1} loss {sum(recent[-20:]) / 20:.4f} lr {opt.param_groups[0]['lr']:.4f}")
