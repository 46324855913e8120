"""Rank 1 waits for a sample that cannot be read, rank 0 for rank 1, until the job is killed."""

import os
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import holter


class Stuck(TensorDataset):
    def __getitem__(self, index):
        if index == 383 and dist.get_rank() == 1:
            time.sleep(3600)  # a network disk that no longer answers
        return super().__getitem__(index)


def train(rank, world, store):
    os.environ["RANK"] = str(rank)  # as torchrun does
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    torch.manual_seed(0)
    x = torch.randn(384, 8)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2]
    data = Stuck(x, y)
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    with holter.watch(model, optimizer, "run", silence=1.0, quiet=True):
        for _ in range(2):
            for inputs, targets in loader:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(inputs), targets)
                loss.backward()
                optimizer.step()
    dist.destroy_process_group()


def stands(rank, line):
    stacks = Path(f"run/rank-{rank}/stacks.txt")
    return stacks.exists() and line in stacks.read_text()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        job = mp.start_processes(
            train, args=(2, f"{folder}/store"), nprocs=2, start_method="fork", join=False
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (
            stands(0, "loss.backward()") and stands(1, "time.sleep(3600)")
        ):
            time.sleep(0.1)
        for process in job.processes:
            process.kill()
            process.join()
