"""DistributedDataParallel with gloo in a world of one, as on a laptop before the cluster."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

FAULT = os.environ.get("FAULT", "")


class Trainer:
    def __init__(self, model, train_data, optimizer, save_every, snapshot_path):
        self.model = DDP(model)
        self.train_data = train_data
        self.optimizer = optimizer
        self.save_every = save_every
        self.snapshot_path = snapshot_path

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        output = self.model(source)
        loss = nn.functional.mse_loss(output, targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch):
        if FAULT != "no-set-epoch":
            self.train_data.sampler.set_epoch(epoch)
        for source, targets in self.train_data:
            print(f"[GPU0] Epoch {epoch} | Loss {self._run_batch(source, targets)}")

    def train(self, max_epochs):
        for epoch in range(max_epochs):
            self._run_epoch(epoch)
            if epoch % self.save_every == 0:
                torch.save(self.model.module.state_dict(), self.snapshot_path)
                print(f"Epoch {epoch} | Training snapshot saved at {self.snapshot_path}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        torch.manual_seed(0)
        x = torch.randn(1024, 20)
        y = torch.tanh(x @ torch.randn(20, 1)) + 0.1 * torch.randn(1024, 1)
        dataset = TensorDataset(x, y)
        loader = DataLoader(
            dataset, batch_size=32, shuffle=False, sampler=DistributedSampler(dataset)
        )
        model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        Trainer(model, loader, optimizer, 3, "snapshot.pt").train(8)
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
