"""Loss multiplied by 2**16 by hand; gradients are divided again before clipping and the step (static loss scaling)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
SCALE = 2.0 ** 16
W = torch.randn(20, 5)


def data(n):
    x = torch.randn(n, 20)
    y = (torch.tanh(x) @ W + 0.4 * torch.randn(n, 5)).argmax(1)
    return x, y


x_tr, y_tr = data(6000)
x_va, y_va = data(1000)
net = nn.Sequential(nn.Linear(20, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 5))
params = list(net.parameters())
opt = torch.optim.AdamW(params, lr=1e-3, weight_decay=0.05)
for epoch in range(7):
    net.train()
    total, skipped = 0.0, 0
    for idx in torch.randperm(len(x_tr)).split(64):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = net(x_tr[idx])
        scaled = F.cross_entropy(out.float(), y_tr[idx]) * SCALE
        opt.zero_grad()
        scaled.backward()
        for p in params:
            p.grad.div_(SCALE)
        norm = nn.utils.clip_grad_norm_(params, 1.0)
        if not torch.isfinite(norm):
            skipped += 1
            continue
        opt.step()
        total += scaled.item() * len(idx)
    net.eval()
    with torch.no_grad():
        out = net(x_va)
    print(f"epoch {epoch:2d} scaled train loss {total / len(x_tr):.0f} skipped {skipped} val loss {F.cross_entropy(out, y_va):.4f} "
          f"val acc {(out.argmax(1) == y_va).float().mean():.3f}")
