import math
import torch

torch.manual_seed(19)
x = torch.randn(4000, 10)
y = (x[:, :2].prod(1) > 0).long() + 2 * (x[:, 3] > 0).long()
net = torch.nn.Sequential(torch.nn.Linear(10, 96), torch.nn.ReLU(), torch.nn.Linear(96, 96), torch.nn.ReLU(), torch.nn.Linear(96, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)


def set_lr(step, period=100):
    lr = 0.01 + 0.24 * 0.5 * (1 + math.cos(math.pi * (step % period) / period))
    for g in opt.param_groups:
        g["lr"] = lr
    return lr


snapshots = []
for step in range(500):
    lr = set_lr(step)
    i = torch.randint(0, 3500, (64,))
    loss = torch.nn.functional.cross_entropy(net(x[i]), y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 25 == 24:
        print(f"step {step + 1} lr {lr:.3f} loss {loss.item():.4f}")
    if step % 100 == 99:
        with torch.no_grad():
            snapshots.append(net(x[3500:]).softmax(1))
ens = torch.stack(snapshots[1:]).mean(0)
print("snapshot ensemble accuracy", (ens.argmax(1) == y[3500:]).float().mean().item())
