"""Knowledge distillation: a small student learns from the soft targets of a larger teacher on mostly unlabelled data."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(0)
T, alpha = 2.0, 0.9

d = load_digits()
rng = np.random.default_rng(0)
order = rng.permutation(len(d.target))
x = torch.tensor(d.data[order] / 16.0, dtype=torch.float32)
y = torch.tensor(d.target[order])
lab, unl, test = slice(0, 250), slice(250, 1300), slice(1300, None)


def mlp(*sizes, drop=0.0):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU(), nn.Dropout(drop)]
    return nn.Sequential(*layers[:-2])


@torch.no_grad()
def accuracy(model, part):
    model.eval()
    return (model(x[part]).argmax(1) == y[part]).float().mean().item()


def shifted(b):
    """Small random shift of the 8x8 images."""
    img = F.pad(b.view(-1, 1, 8, 8), (1, 1, 1, 1))
    dy, dx = torch.randint(0, 3, (2,)).tolist()
    return img[:, :, dy:dy + 8, dx:dx + 8].reshape(len(b), 64)


def fit_supervised(model, epochs, name):
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    for e in range(epochs):
        model.train()
        for idx in torch.randperm(250).split(50):
            loss = F.cross_entropy(model(shifted(x[lab][idx])), y[lab][idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if (e + 1) % (epochs // 4) == 0:
            print(f"{name} epoch {e + 1:3d}  loss {loss.item():.4f}  test acc {accuracy(model, test):.3f}")


teacher = mlp(64, 256, 256, 10, drop=0.2)
fit_supervised(teacher, 200, "teacher")
teacher.eval()
for p in teacher.parameters():
    p.requires_grad_(False)

alone = mlp(64, 32, 10)
fit_supervised(alone, 200, "student alone")

student = mlp(64, 32, 10)
opt = torch.optim.Adam(student.parameters(), lr=4e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 120)
pool = torch.cat([x[lab], x[unl]])
is_labelled = torch.arange(len(pool)) < 250
targets = torch.where(is_labelled, y[:len(pool)], torch.tensor(-100))
for e in range(120):
    student.train()
    total = 0.0
    for idx in torch.randperm(len(pool)).split(65):
        xb = pool[idx]
        s = student(xb)
        with torch.no_grad():
            t = teacher(xb)
        soft = F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1), reduction="batchmean") * T * T
        loss = alpha * soft
        if (targets[idx] >= 0).any():
            loss = loss + (1 - alpha) * F.cross_entropy(s, targets[idx], ignore_index=-100)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    sched.step()
    if (e + 1) % 20 == 0:
        print(f"distil epoch {e + 1:3d}  loss {total / len(pool):.4f}  test acc {accuracy(student, test):.3f}")
agree = (student(x[test]).argmax(1) == teacher(x[test]).argmax(1)).float().mean().item()
print(f"test acc: teacher {accuracy(teacher, test):.3f}  student alone {accuracy(alone, test):.3f}  "
      f"distilled student {accuracy(student, test):.3f}  agreement {agree:.3f}")
