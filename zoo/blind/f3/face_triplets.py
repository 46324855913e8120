import random

import torch
import torch.nn as nn

random.seed(14)
torch.manual_seed(14)

N_ID, PER_ID, DIM = 6, 900, 20
centers = torch.randn(N_ID, DIM)
bank = {k: centers[k] + 0.9 * torch.randn(PER_ID, DIM) for k in range(N_ID)}


def draw_triplets(count):
    anchors, positives, negatives = [], [], []
    for _ in range(count):
        who, other = random.sample(range(N_ID), 2)
        anchors.append(bank[who][random.randrange(PER_ID)])
        positives.append(bank[who][random.randrange(PER_ID)])
        negatives.append(bank[other][random.randrange(PER_ID)])
    return {"anchor": torch.stack(anchors), "pos": torch.stack(positives), "neg": torch.stack(negatives)}


class Embed(nn.Module):
    def __init__(self, out=8):
        super().__init__()
        self.a = nn.Linear(DIM, 64)
        self.b = nn.Linear(64, out)

    def forward(self, x):
        return self.b(torch.nn.functional.gelu(self.a(x)))


def distance(u, v):
    d = u - v
    return (d * d).sum(-1).sqrt()


def triplet(e, batch, margin=0.5):
    a, p, n = e(batch["anchor"]), e(batch["pos"]), e(batch["neg"])
    return torch.relu(distance(a, p) - distance(a, n) + margin).mean()


model = Embed()
opt = torch.optim.RMSprop(model.parameters(), lr=5e-4)
log = []
for step in range(400):
    loss = triplet(model, draw_triplets(12))
    opt.zero_grad()
    loss.backward()
    opt.step()
    log.append(loss.item())
    if len(log) == 40:
        print("step", step + 1, "triplet loss", round(sum(log) / 40, 4))
        log.clear()
