"""Metric learning with triplets; the moving average of the weights is what is evaluated."""

import copy
import hashlib
import json
import os
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(17)


class Triplets(Dataset):
    def __init__(self, centers, n):
        anchor_class = torch.randint(len(centers), (n,))
        shift = torch.randint(1, len(centers), (n,))
        self.anchor = centers[anchor_class] + torch.randn(n, centers.size(1))
        self.positive = centers[anchor_class] + torch.randn(n, centers.size(1))
        negative_class = (anchor_class + shift) % len(centers)
        self.negative = centers[negative_class] + torch.randn(n, centers.size(1))

    def __len__(self):
        return len(self.anchor)

    def __getitem__(self, i):
        return self.anchor[i], self.positive[i], self.negative[i]


class EmbeddingNet(nn.Module):
    def __init__(self, dim=20, embedding=8):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 48), nn.PReLU(), nn.Linear(48, embedding))

    def forward(self, x):
        return self.net(x)


@torch.no_grad()
def update_ema(teacher, student, decay):
    for t, s in zip(teacher.parameters(), student.parameters(), strict=True):
        t.mul_(decay).add_(s, alpha=1 - decay)


centers = 0.9 * torch.randn(6, 20)
train_loader = DataLoader(Triplets(centers, 600), batch_size=60, shuffle=True)
val_set = Triplets(centers, 150)
val_loader = DataLoader(val_set, batch_size=60)

student = EmbeddingNet()
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.requires_grad_(False)
teacher.eval()

criterion = nn.TripletMarginLoss(margin=1.0, p=2)
optimizer = torch.optim.Adam(student.parameters(), lr=2e-3)
history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}

for epoch in range(10):
    student.train()
    for anchor, positive, negative in train_loader:
        loss = criterion(student(anchor), student(positive), student(negative))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in student.parameters()))
        optimizer.step()
        update_ema(teacher, student, decay=0.9)
        history["loss"].append(loss.item())
        history["grad_norm"].append(norm.item())
        history["lr"].append(optimizer.param_groups[0]["lr"])

    total = 0.0
    with torch.no_grad():
        for anchor, positive, negative in val_loader:
            val = criterion(teacher(anchor), teacher(positive), teacher(negative))
            total += val.item() * len(anchor)
    history["val_loss"].append([len(history["loss"]), total / len(val_set)])
    print(f"epoch {epoch}: train {loss.item():.4f} | ema val {total / len(val_set):.4f}")

if "HISTORY" in os.environ:
    weights = b"".join(v.numpy().tobytes() for v in student.state_dict().values())
    history["weights"] = hashlib.sha256(weights).hexdigest()
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
