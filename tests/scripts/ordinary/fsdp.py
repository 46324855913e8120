"""Fully sharded data parallel on the CPU: `torchrun --nproc-per-node 2 fsdp.py`."""

import hashlib
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    x = torch.randn(1280, 8)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] + 0.05 * torch.randn(1280, 1)
    x, y = x[rank::2], y[rank::2]

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    history = {"loss": [], "grad_norm": []}

    for epoch in range(2):
        for start in range(0, len(x), 32):
            optimizer.zero_grad()
            loss = criterion(model(x[start : start + 32]), y[start : start + 32])
            loss.backward()
            shards = [p.grad.to_local() for p in model.parameters()]
            norm = torch.sqrt(sum(each.pow(2).sum() for each in shards))
            optimizer.step()
            history["loss"].append(loss.item())
            history["grad_norm"].append(norm.item())
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}")

    if "HISTORY" in os.environ:
        weights = b"".join(p.to_local().detach().numpy().tobytes() for p in model.parameters())
        history["weights"] = hashlib.sha256(weights).hexdigest()
        Path(f"{os.environ['HISTORY']}.{rank}").write_text(json.dumps(history))
    del model, optimizer, loss
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
