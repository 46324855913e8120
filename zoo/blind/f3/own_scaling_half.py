import torch
import torch.nn as nn

torch.manual_seed(4)


def spirals(n):
    t = torch.rand(n) * 3 + 0.3
    y = torch.randint(0, 2, (n,))
    sign = 1.0 - 2.0 * y
    x = torch.stack([sign * t * torch.cos(2 * t), sign * t * torch.sin(2 * t)], 1)
    return x + 0.05 * torch.randn(n, 2), y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, x):
        return self.stack(x)


def copy_grads(low, master, scale):
    for a, b in zip(low.parameters(), master.parameters()):
        b.grad = a.grad.float() / scale


def push_weights(low, master):
    with torch.no_grad():
        for a, b in zip(low.parameters(), master.parameters()):
            a.copy_(b)


master = Net()
low = Net().half()
push_weights(low, master)
opt = torch.optim.SGD(master.parameters(), lr=0.05, momentum=0.9)
scale = 1024.0
x_all, y_all = spirals(2000)
for step in range(360):
    idx = torch.randint(0, 2000, (64,))
    logits = low(x_all[idx].half())
    loss = nn.functional.cross_entropy(logits.float(), y_all[idx])
    low.zero_grad()
    (loss * scale).backward()
    copy_grads(low, master, scale)
    opt.step()
    push_weights(low, master)
    if step % 25 == 24:
        scale *= 2
        print(f"step {step + 1} loss {loss.item():.4f} scale {scale:.0f}")
