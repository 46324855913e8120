"""Snapshot ensemble: cosine warm restarts, the loss rises at each restart and falls again."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(10)
torch.set_num_threads(1)

SIZE, CLASSES, BATCH, CYCLE, CYCLES = 12, 5, 32, 110, 4


def patterns():
    g = torch.Generator().manual_seed(13)
    return torch.randn(CLASSES, 1, SIZE, SIZE, generator=g)


def draw(protos):
    y = torch.randint(0, CLASSES, (BATCH,))
    shift = torch.randint(-1, 2, (2,)).tolist()
    x = torch.roll(protos[y], shift, dims=(2, 3)) + 1.5 * torch.randn(BATCH, 1, SIZE, SIZE)
    return x, y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                                  nn.Conv2d(16, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.fc = nn.Linear(16 * 36, CLASSES)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def evaluate(nets, protos):
    with torch.no_grad():
        x, y = draw(protos)
        p = sum(n.eval()(x).softmax(-1) for n in nets)
    for n in nets:
        n.train()
    return (p.argmax(1) == y).float().mean().item()


def main():
    protos = patterns()
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.12, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=CYCLE)
    snapshots = []
    for step in range(CYCLE * CYCLES):
        x, y = draw(protos)
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 10 == 0:
            print(f"step {step} lr {opt.param_groups[0]['lr']:.4f} loss {loss.item():.4f}")
        if step % CYCLE == CYCLE - 1:
            snapshots.append(copy.deepcopy(net))
            print(f"== snapshot {len(snapshots)} ensemble accuracy {evaluate(snapshots, protos):.3f}")


if __name__ == "__main__":
    main()
