"""Endless generated stream over two workers; evaluation every 60 steps on a fixed set."""
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, get_worker_info

A = torch.randn(12, 4, generator=torch.Generator().manual_seed(42))


def draw(n, g):
    x = torch.randn(n, 12, generator=g)
    return x, torch.tanh(x @ A * 0.5) + 0.1 * torch.randn(n, 4, generator=g)


class Stream(IterableDataset):
    def __init__(self, batch):
        self.batch = batch

    def __iter__(self):
        info = get_worker_info()
        g = torch.Generator().manual_seed(1000 + (info.id if info else 0))
        while True:
            yield draw(self.batch, g)


def main(steps=360):
    torch.manual_seed(0)
    loader = iter(DataLoader(Stream(64), batch_size=None, num_workers=2))
    val_loader = DataLoader(TensorDataset(*draw(400, torch.Generator().manual_seed(5))), batch_size=200)
    model = nn.Sequential(nn.Linear(12, 64), nn.SiLU(), nn.Linear(64, 4))
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=steps)
    smooth = None
    for step in range(1, steps + 1):
        x, y = next(loader)
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        smooth = loss.item() if smooth is None else 0.95 * smooth + 0.05 * loss.item()
        if step % 60 == 0:
            model.eval()
            with torch.no_grad():
                se = sum(((model(a) - b) ** 2).mean(1).sum().item() for a, b in val_loader)
            model.train()
            print(f"step {step} loss {smooth:.4f} val mse {se / 400:.4f}")


if __name__ == "__main__":
    main()
