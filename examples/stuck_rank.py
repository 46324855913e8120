"""Four ranks, of which one stands still: it waits for a sample that cannot be read.

holter run --silence 3 examples/stuck_rank.py

The script gives up after 45 seconds, as a scheduler would. The report names the rank and its line.
"""

import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS = 4


class Archive(TensorDataset):
    def __getitem__(self, index):
        if index == 702 and dist.get_rank() == 2:
            time.sleep(3600)  # a network disk that no longer answers
        return super().__getitem__(index)


def train(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    rows = torch.randn(1024, 16)
    data = Archive(rows, rows[:, :4].argmax(1))
    sampler = DistributedSampler(data, shuffle=False, drop_last=True)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(10):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        job = mp.start_processes(
            train, args=(f"{folder}/store",), nprocs=RANKS, start_method="fork", join=False
        )
        time.sleep(45)
        for process in job.processes:
            process.kill()
            process.join()
