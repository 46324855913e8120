"""Hogwild: processes that train one model in shared memory."""

import argparse

import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(30, 50)
        self.fc2 = nn.Linear(50, 5)

    def forward(self, x):
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def dataset(count, seed):
    centers = 0.7 * torch.randn(5, 30, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 5, (count,), generator=generator)
    return TensorDataset(centers[labels] + torch.randn(count, 30, generator=generator), labels)


def train(rank, args, model):
    torch.manual_seed(args.seed + rank)
    train_loader = DataLoader(dataset(1600, 1), batch_size=32, shuffle=True)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    for epoch in range(1, args.epochs + 1):
        model.train()
        for batch_idx, (data, target) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()
            if batch_idx % args.log_interval == 0:
                print(f"{rank}\tTrain Epoch: {epoch} [{batch_idx}]\tLoss: {loss.item()}")


def test(model):
    model.eval()
    test_loader = DataLoader(dataset(400, 2), batch_size=100)
    test_loss = 0
    with torch.no_grad():
        for data, target in test_loader:
            test_loss += F.nll_loss(model(data), target, reduction="sum").item()
    print(f"\nTest set: Average loss: {test_loss / len(test_loader.dataset)}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Hogwild example")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10)
    parser.add_argument("--num-processes", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    mp.set_start_method("spawn", force=True)
    model = Net()
    model.share_memory()  # gradients are allocated lazily, so they are not shared here
    processes = []
    for rank in range(args.num_processes):
        p = mp.Process(target=train, args=(rank, args, model))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
    test(model)
