"""Train, save a checkpoint each epoch, and continue from it with --resume."""

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--total-epochs", type=int, default=8)
parser.add_argument("--lr", type=float, default=0.02)
parser.add_argument("--resume", default="")
parser.add_argument("--fault", default="")
args = parser.parse_args()

torch.manual_seed(0)
generator = torch.Generator().manual_seed(3)
weights = torch.randn(20, 5, generator=generator)


def split(count):
    x = torch.randn(count, 20, generator=generator)
    return TensorDataset(x, (x @ weights + torch.randn(count, 5, generator=generator)).argmax(1))


train_loader = DataLoader(split(1600), batch_size=32, shuffle=True)
val_loader = DataLoader(split(400), batch_size=100)

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
    optimizer, T_max=args.total_epochs * len(train_loader)
)

start_epoch = 0
if args.resume:
    checkpoint = torch.load(args.resume, weights_only=True)
    model.load_state_dict(checkpoint["model"])
    start_epoch = checkpoint["epoch"] + 1
    if args.fault != "model-only":
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
    torch.manual_seed(start_epoch)
    print(f"=> loaded checkpoint (epoch {checkpoint['epoch']})")


def validate():
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            total += criterion(model(x), y).item() * len(x)
    model.train()
    return total / len(val_loader.dataset)


for epoch in range(start_epoch, start_epoch + args.epochs):
    for i, (x, y) in enumerate(train_loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if i % 10 == 0:
            print(f"Epoch: [{epoch}][{i}/{len(train_loader)}]\tLoss {loss.item()}")
    print(f" * Validation loss {validate()}")
    state = {
        "epoch": epoch,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
    }
    torch.save(state, Path("checkpoint.pt"))
