"""Gradient accumulation: micro-batches of 16, an update every 4 of them. Losses are summed and
divided by the number of samples that really went into the update, so the short tail is right too."""
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.set_num_threads(1)
torch.manual_seed(0)
d = load_digits()
xtr, xte, ytr, yte = train_test_split(d.data / 16.0, d.target, test_size=0.25, random_state=0, stratify=d.target)
xtr, xte = torch.tensor(xtr).float(), torch.tensor(xte).float()
ytr, yte = torch.tensor(ytr), torch.tensor(yte)
MICRO, ACC = 16, 4

net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
ce = nn.CrossEntropyLoss(reduction="sum")


def apply_update(count):
    for p in net.parameters():
        p.grad.div_(count)
    opt.step()
    opt.zero_grad()


for epoch in range(30):
    total, in_group = 0.0, 0
    chunks = torch.randperm(len(xtr)).split(MICRO)
    for k, idx in enumerate(chunks):
        loss = ce(net(xtr[idx]), ytr[idx])
        loss.backward()
        total += loss.item()
        in_group += len(idx)
        if (k + 1) % ACC == 0:
            apply_update(in_group)
            in_group = 0
    if in_group:
        apply_update(in_group)
    if epoch % 3 == 0:
        with torch.no_grad():
            out = net(xte)
        print(f"epoch {epoch}: loss {total / len(xtr):.4f} test loss {ce(out, yte).item() / len(yte):.4f}")
with torch.no_grad():
    print(f"test accuracy {(net(xte).argmax(1) == yte).float().mean():.3f}")
