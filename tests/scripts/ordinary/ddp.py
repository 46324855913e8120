"""Distributed data parallel on the CPU: `torchrun --nproc-per-node 2 ddp.py`."""

import hashlib
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)

    x = torch.randn(640, 8)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] + 0.05 * torch.randn(640, 1)
    dataset = TensorDataset(x, y)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)

    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    ddp_model = DistributedDataParallel(model)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(ddp_model.parameters(), lr=1e-2)
    history = {"loss": [], "grad_norm": []}

    for epoch in range(4):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = criterion(ddp_model(inputs), targets)
            loss.backward()
            norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
            optimizer.step()
            history["loss"].append(loss.item())
            history["grad_norm"].append(norm.item())
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}")

    if "HISTORY" in os.environ:
        weights = b"".join(v.numpy().tobytes() for v in model.state_dict().values())
        history["weights"] = hashlib.sha256(weights).hexdigest()
        Path(f"{os.environ['HISTORY']}.{rank}").write_text(json.dumps(history))
    del ddp_model, optimizer, loss  # they hold on to the process group
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
