import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(121)


def augment(x):
    keep = (torch.rand_like(x) > 0.2).float()
    return x * keep + 0.1 * torch.randn_like(x)


class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
        self.project = nn.Sequential(nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        return F.normalize(self.project(self.trunk(x)), dim=1)


def info_nce(a, b, temperature):
    logits = a @ b.T / temperature
    labels = torch.arange(len(a))
    return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels))


class Anneal:
    def __init__(self, first, steps):
        self.first = first
        self.steps = steps

    def value(self, step):
        return self.first * max(0.0, 1.0 - step / self.steps)


def main():
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16.0
    model = Projector()
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    anneal = Anneal(0.5, 380)
    step = 0
    for epoch in range(16):
        for idx in torch.randperm(len(x)).split(64):
            temperature = anneal.value(step)
            loss = info_nce(model(augment(x[idx])), model(augment(x[idx])), temperature)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            if step % 30 == 0:
                print(f"step {step} temperature {temperature:.4f} loss {loss.item():.4f}")
            step += 1


if __name__ == "__main__":
    main()
