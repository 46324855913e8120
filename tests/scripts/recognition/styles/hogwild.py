"""Several processes train one model in shared memory."""

import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F


def train(rank, model):
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(30):
        x = torch.randn(16, 6)
        optimizer.zero_grad()
        F.cross_entropy(model(x), (x.sum(1) > 0).long()).backward()
        optimizer.step()


if __name__ == "__main__":
    mp.set_start_method("spawn", force=True)
    model = nn.Linear(6, 2)
    model.share_memory()
    processes = []
    for rank in range(2):
        p = mp.Process(target=train, args=(rank, model))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
