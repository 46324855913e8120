"""Small CNN with gradient accumulation: batch 16, effective batch 64."""

import hashlib
import json
import os
from pathlib import Path

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


def make_images(n):
    """Draw a bright bar, horizontal, vertical or diagonal, in noise."""
    images = 0.7 * torch.randn(n, 1, 12, 12)
    labels = torch.randint(0, 3, (n,))
    for i, label in enumerate(labels.tolist()):
        k = int(torch.randint(2, 10, ()))
        if label == 0:
            images[i, 0, k, :] += 1
        elif label == 1:
            images[i, 0, :, k] += 1
        else:
            images[i, 0] += torch.eye(12).roll(k, 0)
    return images, labels


train_loader = DataLoader(TensorDataset(*make_images(350)), batch_size=16, shuffle=True)
val_images, val_labels = make_images(100)
val_loader = DataLoader(TensorDataset(val_images, val_labels), batch_size=32)

net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveMaxPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 3),
)
loss_fn = nn.CrossEntropyLoss()
opt = optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)

accum_steps = 4
max_norm = 1.0
history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}

for epoch in range(10):
    net.train()
    opt.zero_grad(set_to_none=True)
    losses = []
    for i, (x, y) in enumerate(train_loader):
        loss = loss_fn(net(x), y) / accum_steps
        loss.backward()
        losses.append(accum_steps * loss.item())

        # step every accum_steps batches, and with what is left at the end of the epoch
        if (i + 1) % accum_steps == 0 or i + 1 == len(train_loader):
            norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in net.parameters()))
            history["loss"].append(sum(losses) / len(losses))
            history["grad_norm"].append(norm.item())
            history["lr"].append(opt.param_groups[0]["lr"])
            nn.utils.clip_grad_norm_(net.parameters(), max_norm)
            opt.step()
            opt.zero_grad(set_to_none=True)
            losses = []

    net.eval()
    with torch.no_grad():
        total = sum(loss_fn(net(x), y).item() * len(x) for x, y in val_loader)
    history["val_loss"].append([len(history["loss"]), total / len(val_images)])
    print("epoch {}, step {}, val loss {:.4f}".format(epoch, *history["val_loss"][-1]))

if "HISTORY" in os.environ:
    weights = b"".join(v.numpy().tobytes() for v in net.state_dict().values())
    history["weights"] = hashlib.sha256(weights).hexdigest()
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
