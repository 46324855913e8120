"""Semi-supervised leaf classification with a mean teacher."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def leaves(n, centers, g):
    y = torch.randint(0, len(centers), (n,), generator=g)
    return centers[y] + 0.7 * torch.randn(n, centers.shape[1], generator=g), y


def network(dim, classes):
    return nn.Sequential(
        nn.Linear(dim, 48), nn.ReLU(),
        nn.Linear(48, 48), nn.ReLU(),
        nn.Linear(48, classes),
    )


class MeanTeacher:
    def __init__(self, student, keep, gain):
        self.net = copy.deepcopy(student).requires_grad_(False)
        self.keep = keep
        self.gain = gain

    @torch.no_grad()
    def update(self, student):
        for t, s in zip(self.net.parameters(), student.parameters()):
            t.mul_(self.keep).add_(s, alpha=1 - self.keep)

    def end_epoch(self):
        self.keep = self.keep + self.gain

    @torch.no_grad()
    def __call__(self, x):
        return self.net(x)


class Experiment:
    def __init__(self, seed=45):
        torch.manual_seed(seed)
        self.g = torch.Generator().manual_seed(seed)
        self.centers = torch.randn(6, 12, generator=self.g) * 1.1
        self.student = network(12, 6)
        self.teacher = MeanTeacher(self.student, keep=0.90, gain=0.01)
        self.opt = torch.optim.AdamW(self.student.parameters(), lr=2e-3)

    def step(self):
        xl, yl = leaves(24, self.centers, self.g)
        xu, _ = leaves(72, self.centers, self.g)
        sup = F.cross_entropy(self.student(xl), yl)
        noisy = xu + 0.2 * torch.randn(xu.shape, generator=self.g)
        agree = F.mse_loss(self.student(noisy), self.teacher(xu))
        loss = sup + 0.5 * agree
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.teacher.update(self.student)
        return sup.item(), agree.item(), loss.item()

    def run(self, epochs, per_epoch):
        for e in range(epochs):
            for i in range(per_epoch):
                sup, agree, loss = self.step()
                if i % 10 == 0:
                    print(f"epoch {e:2d} it {i:2d} loss {loss:.4f} (sup {sup:.4f} agree {agree:.4f})")
            self.teacher.end_epoch()


if __name__ == "__main__":
    Experiment().run(epochs=20, per_epoch=25)
