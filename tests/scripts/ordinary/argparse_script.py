#!/usr/bin/env python
"""Train a classifier on two moons.

Usage: argparse_script.py moons --output-dir out [--epochs 6] [--target-loss 0.5]
"""

import argparse
import csv
import hashlib
import json
import os
import sys
from pathlib import Path

import torch
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    parser = argparse.ArgumentParser(description="Two moons")
    parser.add_argument("name", help="name of the run")
    parser.add_argument("--output-dir", required=True, help="where to write, made if missing")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N")
    parser.add_argument("--test-batch-size", type=int, default=128, metavar="N")
    parser.add_argument("--epochs", type=int, default=8, metavar="N")
    parser.add_argument("--lr", type=float, default=0.2, metavar="LR")
    parser.add_argument("--gamma", type=float, default=0.7, metavar="M")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--log-interval", type=int, default=5, metavar="N")
    parser.add_argument("--no-save", action="store_true", help="do not save the model")
    parser.add_argument(
        "--target-loss", type=float, default=None, help="exit with 3 if the test loss stays above"
    )
    return parser.parse_args()


def two_moons(n):
    label = torch.randint(0, 2, (n,))
    angle = torch.rand(n) * torch.pi
    x = torch.where(label == 0, angle.cos(), 1 - angle.cos())
    y = torch.where(label == 0, angle.sin(), 0.5 - angle.sin())
    return TensorDataset(torch.stack([x, y], 1) + 0.1 * torch.randn(n, 2), label)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 32)
        self.fc2 = nn.Linear(32, 2)

    def forward(self, x):
        return nn.functional.log_softmax(self.fc2(torch.relu(self.fc1(x))), dim=1)


def train(args, model, loader, optimizer, history):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.nll_loss(model(data), target)
        loss.backward()
        norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
        optimizer.step()
        history["loss"].append(loss.item())
        history["grad_norm"].append(norm.item())
        history["lr"].append(optimizer.param_groups[0]["lr"])
        if batch_idx % args.log_interval == 0:
            done, total = batch_idx * len(data), len(loader.dataset)
            print(f"Train: [{done}/{total}]\tLoss: {loss.item():.6f}")


def test(model, loader):
    model.eval()
    test_loss, correct = 0.0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            test_loss += nn.functional.nll_loss(output, target).item() * len(data)
            correct += output.argmax(dim=1).eq(target).sum().item()
    n = len(loader.dataset)
    print(f"\nTest set: Average loss: {test_loss / n:.4f}, Accuracy: {correct}/{n}\n")
    return test_loss / n


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    out = Path(args.output_dir)
    out.mkdir(parents=True, exist_ok=True)

    train_loader = DataLoader(two_moons(640), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(two_moons(200), batch_size=args.test_batch_size)
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}

    with (out / "log.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["epoch", "test_loss"])
        for epoch in range(1, args.epochs + 1):
            train(args, model, train_loader, optimizer, history)
            test_loss = test(model, test_loader)
            history["val_loss"].append([len(history["loss"]), test_loss])
            writer.writerow([epoch, test_loss])
            scheduler.step()

    if not args.no_save:
        torch.save(model.state_dict(), out / f"{args.name}.pt")

    if "HISTORY" in os.environ:
        weights = b"".join(v.numpy().tobytes() for v in model.state_dict().values())
        history["weights"] = hashlib.sha256(weights).hexdigest()
        Path(os.environ["HISTORY"]).write_text(json.dumps(history))

    if args.target_loss is not None and test_loss > args.target_loss:
        print(f"test loss {test_loss:.4f} is above {args.target_loss}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
