"""Gradient accumulation with a partial last step and warm restarts: the loss jumps up at every restart."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(11)
d = load_digits()
order = torch.randperm(len(d.target))
x = torch.tensor(d.data / 16.0, dtype=torch.float32)[order].view(-1, 1, 8, 8)
y = torch.tensor(d.target)[order]
y_train = y[:1350].clone()
wrong = torch.rand(1350) < 0.08  # some labels of this archive are known to be wrong
y_train[wrong] = torch.randint(0, 10, (int(wrong.sum()),))
micro, group = 40, 4  # 34 micro-batches: eight full groups and one of two, the last micro-batch has 30 images

net = nn.Sequential(nn.Conv2d(1, 24, 3, padding=1), nn.GroupNorm(4, 24), nn.ReLU(), nn.Conv2d(24, 32, 3, stride=2, padding=1),
                    nn.GroupNorm(4, 32), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 16, 10))
opt = torch.optim.SGD(net.parameters(), lr=0.12, momentum=0.9, weight_decay=1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=4, T_mult=2, eta_min=1e-4)


@torch.no_grad()
def test():
    net.eval()
    out = net(x[1350:])
    return F.cross_entropy(out, y[1350:]).item(), (out.argmax(1) == y[1350:]).float().mean().item()



def check_accumulation():
    """The accumulated gradient of a group equals the gradient of the group in one piece."""
    idx = torch.arange(110)
    opt.zero_grad()
    for p in idx.split(micro):
        (F.cross_entropy(net(x[p]), y_train[p], reduction="sum") / len(idx)).backward()
    a = [p.grad.clone() for p in net.parameters()]
    opt.zero_grad()
    F.cross_entropy(net(x[idx]), y_train[idx]).backward()
    diff = max((u - p.grad).abs().max().item() for u, p in zip(a, net.parameters()))
    opt.zero_grad()
    return diff


print(f"largest difference between accumulated and direct gradient: {check_accumulation():.1e}")
epochs = 28
for e in range(epochs):
    net.train()
    chunks = torch.randperm(1350).split(micro)
    groups = [chunks[i:i + group] for i in range(0, len(chunks), group)]
    total, lr = 0.0, opt.param_groups[0]["lr"]
    for gi, g in enumerate(groups):
        n = sum(len(idx) for idx in g)
        opt.zero_grad()
        for idx in g:
            loss = F.cross_entropy(net(x[idx]), y_train[idx], reduction="sum") / n
            loss.backward()
            total += loss.item() * n
        opt.step()
        sched.step(e + (gi + 1) / len(groups))
    tl, acc = test()
    print(f"epoch {e + 1:2d}  lr at start {lr:.4f}  train {total / 1350:.4f}  test {tl:.4f}  acc {acc:.3f}"
          + ("  <- end of cycle" if e + 1 in (4, 12, 28) else ""))
print(f"{len(groups)} optimizer steps per epoch, last one over {sum(map(len, groups[-1]))} images; test acc {acc:.3f}")
