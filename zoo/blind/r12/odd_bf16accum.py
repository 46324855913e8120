"""bf16 autocast on cpu, micro batches of 8 with 8 accumulation steps, loss divided accordingly."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
proto = torch.randn(10, 1, 12, 12)
y = torch.randint(0, 10, (3600,))
x = proto[y] + 3.0 * torch.randn(3600, 1, 12, 12)
net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.GroupNorm(3, 12), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Flatten(), nn.Linear(12 * 36, 64), nn.ReLU(), nn.Linear(64, 10))
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
ACC = 8
for epoch in range(4):
    net.train()
    perm = torch.randperm(3000)
    tot, n_steps = 0.0, 0
    opt.zero_grad()
    for k, i in enumerate(range(0, 2944, 8)):
        idx = perm[i:i + 8]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = net(x[idx])
        loss = F.cross_entropy(out.float(), y[idx])
        (loss / ACC).backward()
        tot += loss.item()
        if (k + 1) % ACC == 0:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            n_steps += 1
    net.eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        acc = (net(x[3000:]).argmax(1) == y[3000:]).float().mean().item()
    print(f"epoch {epoch} updates {n_steps} loss {tot / 368:.4f} val acc {acc:.3f}")
