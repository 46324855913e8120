"""Audio tagging in half precision with master weights kept in float32."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Mixed:
    """Half-precision copy for forward/backward, float32 master for the update."""

    def __init__(self, model, optimizer_cls, **kw):
        self.model = model
        self.master = [p.detach().clone().float().requires_grad_(True) for p in model.parameters()]
        self.opt = optimizer_cls(self.master, **kw)
        self.scale = 128.0
        self.good = 0

    def backward(self, loss):
        (loss * self.scale).backward()

    def step(self):
        for m, p in zip(self.master, self.model.parameters()):
            m.grad = p.grad.float() / self.scale
            p.grad = None
        self.opt.step()
        with torch.no_grad():
            for m, p in zip(self.master, self.model.parameters()):
                p.copy_(m)
        self.good += 1
        if self.good % 20 == 0:
            self.scale *= 2.0


def clips(n, bank, g):
    tags = (torch.rand(n, len(bank), generator=g) < 0.25).float()
    loud = 0.5 + torch.rand(n, len(bank), generator=g)
    spec = (tags * loud) @ bank + 0.2 * torch.randn(n, bank.shape[1], generator=g)
    return spec, tags


def main():
    torch.manual_seed(57)
    g = torch.Generator().manual_seed(57)
    bank = torch.rand(8, 40, generator=g) * (torch.rand(8, 40, generator=g) < 0.3)
    model = nn.Sequential(
        nn.Linear(40, 64), nn.ReLU(),
        nn.Linear(64, 64), nn.ReLU(),
        nn.Linear(64, 8),
    ).half()
    mixed = Mixed(model, torch.optim.SGD, lr=0.1, momentum=0.9)
    for step in range(500):
        x, y = clips(64, bank, g)
        logits = model(x.half()).float()
        loss = F.binary_cross_entropy_with_logits(logits, y)
        mixed.backward(loss)
        mixed.step()
        if step % 20 == 0:
            print(f"step {step:4d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
