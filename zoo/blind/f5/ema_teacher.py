"""Semi-supervised classification with an averaged teacher that is copied back now and then."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(57)
torch.set_num_threads(1)

DIM, CLASSES, STEPS, PERIOD = 24, 6, 450, 150


def make_data():
    g = torch.Generator().manual_seed(2)
    centres = torch.randn(CLASSES, DIM, generator=g) * 1.2
    y = torch.randint(0, CLASSES, (6000,), generator=g)
    x = centres[y] + torch.randn(6000, DIM, generator=g)
    return x[:600], y[:600], x[600:]


def mlp():
    return nn.Sequential(nn.Linear(DIM, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, CLASSES))


class Average:
    """exponential average of the weights, started at zero and corrected for that"""

    def __init__(self, model, decay=0.98):
        self.decay = decay
        self.shadow = {n: torch.zeros_like(p) for n, p in model.named_parameters()}
        self.t = 0

    def update(self, model):
        self.t += 1
        with torch.no_grad():
            for n, p in model.named_parameters():
                self.shadow[n].mul_(self.decay).add_(p, alpha=1 - self.decay)

    def restart(self):
        for s in self.shadow.values():
            s.zero_()
        self.t = 0

    def write_to(self, model):
        correction = 1.0 - self.decay ** self.t
        with torch.no_grad():
            for n, p in model.named_parameters():
                p.copy_(self.shadow[n] / correction)


def main():
    xl, yl, xu = make_data()
    student, teacher = mlp(), mlp()
    teacher = copy.deepcopy(student)
    avg = Average(student)
    opt = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
    for step in range(STEPS):
        i = torch.randint(0, len(xl), (48,))
        j = torch.randint(0, len(xu), (96,))
        noisy = xu[j] + 0.3 * torch.randn(96, DIM)
        with torch.no_grad():
            soft = teacher(xu[j]).softmax(-1)
        sup = F.cross_entropy(student(xl[i]), yl[i])
        cons = (student(noisy).softmax(-1) - soft).pow(2).mean()
        loss = sup + min(1.0, step / 100) * 5.0 * cons
        opt.zero_grad()
        loss.backward()
        opt.step()
        avg.update(student)
        avg.write_to(teacher)
        if step % PERIOD == PERIOD - 1 and step < STEPS - 1:
            print(f"step {step}: student continues from the average")
            avg.restart()
            avg.write_to(student)
        if step % 15 == 0:
            print(f"step {step} loss {loss.item():.4f} sup {sup.item():.4f} cons {cons.item():.5f}")


if __name__ == "__main__":
    main()
