"""13 and 11 batches in an epoch, which `Join` allows for."""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def train(rank, world, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    torch.manual_seed(0)
    x = torch.randn(384, 8)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2]
    part = slice(0, 208) if rank == 0 else slice(208, 384)  # 13 batches, and 11
    loader = DataLoader(TensorDataset(x[part], y[part]), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(3):
        with Join([model]):
            for inputs, targets in loader:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(inputs), targets)
                loss.backward()
                optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(2, f"{folder}/store"), nprocs=2, start_method="fork")
