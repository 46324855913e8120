"""Margin classifier trained with a layer-wise adaptive optimizer (LARS)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(74)
torch.set_num_threads(1)

DIM, CLASSES, BATCH, STEPS = 32, 5, 32, 600


class LARS(torch.optim.Optimizer):
    def __init__(self, params, lr=1.0, momentum=0.9, trust=0.01):
        super().__init__(params, dict(lr=lr, momentum=momentum, trust=trust))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                w_norm, g_norm = p.norm(), p.grad.norm()
                local = group["trust"] * w_norm / g_norm
                buf = self.state[p].setdefault("momentum", torch.zeros_like(p))
                buf.mul_(group["momentum"]).add_(local * p.grad)
                p.add_(buf, alpha=-group["lr"])


def make_data():
    g = torch.Generator().manual_seed(9)
    centres = torch.randn(CLASSES, DIM, generator=g) * 0.75
    y = torch.randint(0, CLASSES, (4000,), generator=g)
    return centres[y] + 0.95 * torch.randn(4000, DIM, generator=g), y


class Net(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.a = nn.Linear(DIM, width)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, CLASSES)

    def forward(self, x):
        h = F.relu(self.a(x))
        h = F.relu(self.b(h))
        return self.c(h)


def main():
    x, y = make_data()
    net = Net()
    opt = LARS(net.parameters(), lr=0.15)
    avg = None
    for step in range(STEPS):
        for grp in opt.param_groups:
            grp["lr"] = 0.15 * (1.0 - 0.9 * step / STEPS)
        rows = torch.randint(0, len(x), (BATCH,))
        scores = net(x[rows])
        right = scores.gather(1, y[rows][:, None])
        others = F.one_hot(y[rows], CLASSES) == 0
        loss = (F.relu(1.0 + scores - right) * others).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        avg = loss.item() if avg is None else 0.9 * avg + 0.1 * loss.item()
        if step % 20 == 0:
            print(f"step {step} hinge {loss.item():.5f} avg {avg:.5f}")


if __name__ == "__main__":
    main()
