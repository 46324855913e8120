"""Three tasks with learned uncertainty weights: the total loss becomes negative while each task goes on to improve."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(16)
A = torch.randn(12, 3)


def data(n):
    x = torch.randn(n, 12)
    z = torch.tanh(x @ A / 4)
    return x, 0.1 * z[:, 0] + 0.01 * torch.randn(n), 30 * z[:, 1] + 2 * torch.randn(n), (z[:, 2] > 0).float()


tr, va = data(3000), data(1000)
body = nn.Sequential(nn.Linear(12, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU())
heads = nn.ModuleList([nn.Linear(96, 1) for _ in range(3)])
log_var = nn.Parameter(torch.tensor([0.0, 5.0, 0.0]))
opt = torch.optim.Adam([{"params": [*body.parameters(), *heads.parameters()], "lr": 2e-3}, {"params": [log_var], "lr": 2e-2}])
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=18 * 30)


def losses(batch):
    x, a, b, c = batch
    h = body(x)
    out = [k * head(h).squeeze(1) for k, head in zip((1, 20, 1), heads)]
    return torch.stack([F.mse_loss(out[0], a), F.mse_loss(out[1], b), F.binary_cross_entropy_with_logits(out[2], c)])


for epoch in range(18):
    run = 0.0
    for idx in torch.randperm(3000).split(100):
        l = losses([t[idx] for t in tr])
        w = torch.tensor([0.5, 0.5, 1.0]) * torch.exp(-log_var)
        loss = (w * l + 0.5 * log_var).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        run += loss.item() / 30
    with torch.no_grad():
        v = losses(va)
    if epoch % 3 == 2:
        print(f"epoch {epoch:2d} total {run:+.3f} | val small {v[0]:.5f} (var {va[1].var():.4f}) large {v[1]:.2f} (var {va[2].var():.1f}) "
              f"sign bce {v[2]:.3f} | log variances {[round(s, 1) for s in log_var.tolist()]}")
