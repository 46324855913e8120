"""Leaf classifier with float16 autocast and a gradient scaler."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def data(n, centers, g):
    y = torch.randint(0, len(centers), (n,), generator=g)
    return centers[y] + 0.8 * torch.randn(n, centers.shape[1], generator=g), y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(20, 64)
        self.b = nn.Linear(64, 64)
        self.c = nn.Linear(64, 7)

    def forward(self, x):
        return self.c(F.relu(self.b(F.relu(self.a(x)))))


def describe(model):
    total = sum(p.numel() for p in model.parameters())
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"parameters {total} trainable {trainable}")


def main():
    torch.manual_seed(101)
    g = torch.Generator().manual_seed(101)
    centers = torch.randn(7, 20, generator=g)
    net = Net()
    describe(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 26, growth_interval=30)
    skipped = 0
    for step in range(400):
        x, y = data(64, centers, g)
        with torch.autocast("cpu", dtype=torch.float16):
            out = net(x)
        loss = F.cross_entropy(out.float(), y)
        opt.zero_grad()
        scaler.scale(loss).backward()
        before = scaler.get_scale()
        scaler.step(opt)
        scaler.update()
        if scaler.get_scale() < before:
            skipped += 1
        if step % 20 == 0:
            acc = (out.argmax(1) == y).float().mean().item()
            print(f"accuracy {acc:.2f}", end="  ")
            print(f"step {step:4d} loss {loss.item():.4f} scale {scaler.get_scale():.0f} skipped {skipped}")


if __name__ == "__main__":
    main()
    print("done")


# Evaluation is done by a separate script which loads the weights and
# reports the per-species accuracy on the held-out herbarium sheets.
