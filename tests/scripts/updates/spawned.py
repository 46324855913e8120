"""Train one model in each of two processes, started in the way of an argument."""

import json
import os
import sys
from pathlib import Path

import torch
import torch.multiprocessing as mp
from torch import nn, optim
from torch.nn import functional as F


def train(rank, model, losses):
    torch.manual_seed(rank)
    x = torch.randn(320, 4)
    y = (x.sum(1) > 0).long()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    kept = []
    for start in list(range(0, 320, 32)) * 4:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[start : start + 32]), y[start : start + 32])
        loss.backward()
        optimizer.step()
        kept.append(loss.item())
    losses.put((rank, kept))


def train_a_copy(rank, model, losses):
    # A copy: tensors that are sent to a process are shared, and two would race.
    own = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    own.load_state_dict({name: value.clone() for name, value in model.state_dict().items()})
    train(rank, own, losses)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    if sys.argv[1] == "spawn":
        losses = mp.get_context("spawn").SimpleQueue()
        mp.spawn(train_a_copy, (model, losses), nprocs=2)
    else:
        mp.set_start_method(sys.argv[1])
        losses = mp.SimpleQueue()
        workers = [mp.Process(target=train_a_copy, args=(n, model, losses)) for n in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    history = dict(sorted(losses.get() for _ in range(2)))
    print(history)
    if "HISTORY" in os.environ:
        Path(os.environ["HISTORY"]).write_text(json.dumps([history[0], history[1]]))


if __name__ == "__main__":
    main()
