"""Endless simulated event stream (two workers with their own seeds); a report every 60 steps."""
import itertools
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

torch.manual_seed(47)


def sample(gen):
    k = int(torch.randint(0, 3, (1,), generator=gen))
    base = torch.arange(24) * (0.25 + 0.12 * k) + 6.28 * torch.rand(1, generator=gen)
    return torch.sin(base) + 0.5 * torch.randn(24, generator=gen), k


class Events(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        gen = torch.Generator().manual_seed(900 + (info.id if info else 0))
        while True:
            yield sample(gen)


def main():
    gen = torch.Generator().manual_seed(1)
    held = [sample(gen) for _ in range(600)]
    xv, yv = torch.stack([a for a, _ in held]), torch.tensor([k for _, k in held])
    loader = DataLoader(Events(), batch_size=32, num_workers=2)
    net = nn.Sequential(nn.Unflatten(1, (1, 24)), nn.Conv1d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv1d(16, 16, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(64, 3))
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    run = 0.0
    for step, (x, y) in enumerate(itertools.islice(loader, 300), 1):
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item()
        if step % 60 == 0:
            with torch.no_grad():
                o = net(xv)
            print(f"step {step} stream loss {run / 60:.3f} held-out loss {nn.functional.cross_entropy(o, yv):.3f} acc {(o.argmax(1) == yv).float().mean():.3f}")
            run = 0.0


if __name__ == "__main__":
    main()
