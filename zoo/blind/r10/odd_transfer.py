"""Leaf diseases from few examples, with a body trained on leaf species.

The body is first trained on a large set (species), then frozen, also its batch norm
statistics, while a new head learns; at last the top block is released with a smaller
learning rate. Numbers of trainable parameters are printed at every stage.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE = 20


def leaves(n, seed, task):
    """Textured leaves. task 'species': 6 outlines; task 'disease': 4 kinds of spots."""
    rng = np.random.default_rng(seed)
    yy, xx = (np.mgrid[0:SIDE, 0:SIDE] - SIDE / 2 + 0.5) / (SIDE / 2)
    images, labels = [], []
    for _ in range(n):
        species, disease = rng.integers(6), rng.integers(4)
        angle = np.arctan2(yy, xx) + rng.uniform(0, 0.4)
        radius = 0.75 + 0.18 * np.cos((species + 1) * angle) + rng.normal(0, 0.03)
        body = (np.hypot(xx, yy) < radius) * rng.uniform(0.5, 0.8)
        if disease == 1:
            for _ in range(4):
                c = rng.uniform(-0.5, 0.5, 2)
                body[np.hypot(xx - c[0], yy - c[1]) < 0.16] = 0.1
        elif disease == 2:
            body = body * (1 + 0.5 * np.sign(np.sin(10 * xx + rng.uniform(0, 6))))
        elif disease == 3:
            body = np.where(np.hypot(xx, yy) < 0.35, body + 0.4, body)
        images.append(body + rng.normal(0, 0.15, body.shape))
        labels.append(species if task == "species" else disease)
    return torch.tensor(np.stack(images)[:, None], dtype=torch.float32), torch.tensor(labels)


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(2))


class LeafNet(nn.Module):
    def __init__(self, n_out):
        super().__init__()
        self.low, self.top = block(1, 16), block(16, 32)
        self.head = nn.Linear(32 * 25, n_out)

    def forward(self, x):
        return self.head(self.top(self.low(x)).flatten(1))


def set_mode(model, frozen):
    model.train()
    for part in frozen:
        part.eval()                     # a frozen batch norm keeps its statistics


def run(model, data, val, groups, frozen, epochs, name):
    for p in model.parameters():
        p.requires_grad_(True)
    for part in frozen:
        part.requires_grad_(False)
    optimizer = torch.optim.AdamW(groups, weight_decay=1e-2)
    active = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"{name}: {active} of {sum(p.numel() for p in model.parameters())} parameters trained")
    x, y = data
    for epoch in range(1, epochs + 1):
        set_mode(model, frozen)
        total = 0.0
        for rows in torch.randperm(len(x)).split(32):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        val_loss, val_acc = evaluate(model, *val)
        print(f"  epoch {epoch:2d} train loss {total / len(x):.4f} val loss {val_loss:.4f} acc {val_acc:.3f}")


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = model(x)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = LeafNet(6)
    run(model, leaves(3000, 1, "species"), leaves(500, 2, "species"),
        [{"params": model.parameters(), "lr": 2e-3}], [], 5, "species")

    few, val, test = leaves(160, 3, "disease"), leaves(300, 4, "disease"), leaves(1000, 5, "disease")
    model.head = nn.Linear(32 * 25, 4)
    run(model, few, val, [{"params": model.head.parameters(), "lr": 1e-3}], [model.low, model.top], 10,
        "disease, head only")
    print(f"  test acc {evaluate(model, *test)[1]:.3f}")
    run(model, few, val, [{"params": model.top.parameters(), "lr": 5e-4},
                          {"params": model.head.parameters(), "lr": 1e-3}], [model.low], 25,
        "disease, head and top block")
    loss, acc = evaluate(model, *test)
    print(f"test loss {loss:.4f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
