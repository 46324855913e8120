import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(54)
BATCH, STEPS = 64, 480


def spirals(n):
    y = torch.randint(0, 3, (n,))
    r = torch.rand(n) * 2 + 0.2
    a = 2.2 * r + y * 2.0944 + 0.12 * torch.randn(n)
    return torch.stack([r * torch.cos(a), r * torch.sin(a)], 1), y


model = nn.Sequential(
    nn.Linear(2, 96), nn.ReLU(),
    nn.Linear(96, 96), nn.ReLU(),
    nn.Linear(96, 3),
)
opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, nesterov=True)
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=120, eta_min=1e-3)
x_all, y_all = spirals(2000)
losses = []
for step in range(STEPS):
    pick = torch.randint(0, len(x_all), (BATCH,))
    loss = F.cross_entropy(model(x_all[pick]), y_all[pick])
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    opt.step()
    sched.step()
    losses.append(loss.item())
    if step % 20 == 0:
        rate = opt.param_groups[0]["lr"]
        print(f"step {step} lr {rate:.4f} loss {loss.item():.4f}")
print("final", losses[-1])
