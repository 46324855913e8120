"""Classify small images with a convolutional network, one test pass after each epoch."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, softmax_dim):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(400, 64)
        self.fc2 = nn.Linear(64, 10)
        self.softmax_dim = softmax_dim

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = self.dropout1(F.max_pool2d(x, 2))
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return F.log_softmax(self.fc2(self.dropout2(x)), dim=self.softmax_dim)


def images(count, prototypes, generator):
    labels = torch.randint(0, 10, (count,), generator=generator)
    noise = torch.randn(count, 1, 14, 14, generator=generator)
    return prototypes[labels] + 2.0 * noise, labels


def train(args, model, train_loader, optimizer, epoch):
    if not (args.fault == "train-never-again" and epoch > 1):
        model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        if args.fault != "no-zero-grad":
            optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            done = batch_idx * len(data)
            share = 100.0 * batch_idx / len(train_loader)
            print(
                f"Train Epoch: {epoch} [{done}/{len(train_loader.dataset)} ({share:.0f}%)]"
                f"\tLoss: {loss.item()}"
            )


def test(args, model, test_loader):
    if args.fault != "no-eval":
        model.eval()
    test_loss = 0
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()  # sum up batch loss
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    test_loss /= len(test_loader.dataset)
    print(
        f"\nTest set: Average loss: {test_loss}, Accuracy: {correct}/{len(test_loader.dataset)}"
        f" ({100.0 * correct / len(test_loader.dataset):.0f}%)\n"
    )


def main():
    parser = argparse.ArgumentParser(description="MNIST-like example")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--test-batch-size", type=int, default=150)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10)
    parser.add_argument("--fault", default="")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(7)
    prototypes = F.avg_pool2d(torch.randn(10, 1, 16, 16, generator=generator), 3, 1) * 3
    data, labels = images(3200, prototypes, generator)
    if args.fault == "shuffled-labels":
        labels = labels[torch.randperm(len(labels), generator=generator)]
    train_set = TensorDataset(data, labels)
    test_set = TensorDataset(*images(500, prototypes, generator))
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=args.test_batch_size)

    model = Net(softmax_dim=0 if args.fault == "softmax-over-batch" else 1)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        train(args, model, train_loader, optimizer, epoch)
        test(args, model, test_loader)
        scheduler.step()


if __name__ == "__main__":
    main()
