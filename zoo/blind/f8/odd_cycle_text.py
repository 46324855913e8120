"""Sentence classification, cosine schedule with hard restarts to a high learning rate."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts

VOCAB, CLASSES, LEN = 90, 4, 10


def sentences(n, table, g):
    x = torch.randint(0, VOCAB, (n, LEN), generator=g)
    y = table[x].sum(1).argmax(1)
    return x, y


class Classifier(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.mid = nn.Linear(dim, 48)
        self.out = nn.Linear(48, CLASSES)

    def forward(self, x):
        return self.out(F.relu(self.mid(self.emb(x).mean(1))))


def describe(model):
    total = sum(p.numel() for p in model.parameters())
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"parameters {total} trainable {trainable}")


def main():
    torch.manual_seed(66)
    g = torch.Generator().manual_seed(66)
    table = torch.randn(VOCAB, CLASSES, generator=g)
    net = Classifier()
    describe(net)
    opt = torch.optim.SGD(net.parameters(), lr=1.5, momentum=0.9)
    sched = CosineAnnealingWarmRestarts(opt, T_0=60, T_mult=2, eta_min=1e-3)
    best = float("inf")
    window = []
    for step in range(420):
        x, y = sentences(64, table, g)
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        window.append(loss.item())
        if len(window) == 15:
            mean = sum(window) / 15
            best = min(best, mean)
            window.clear()
            print(f"step {step:4d} loss {mean:.4f} best {best:.4f} lr {sched.get_last_lr()[0]:.3f}")


if __name__ == "__main__":
    main()
    print("finished")


# Snapshots of the end of every cycle are averaged for the submission; that
# part lives in the evaluation notebook and needs nothing but the weights.
