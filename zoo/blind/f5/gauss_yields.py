"""Crop yields with a Gaussian head (mean and variance), targets standardised per batch."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(18)
torch.set_num_threads(1)

FIELDS, FEATS, BATCH = 4161, 20, 64


def make_fields():
    g = torch.Generator().manual_seed(50)
    x = torch.randn(FIELDS, FEATS, generator=g)
    w = torch.randn(FEATS, generator=g) * 0.3
    mean = 5.0 + x @ w + 0.5 * torch.sin(2 * x[:, 0])
    noise = 0.2 + 0.3 * torch.sigmoid(x[:, 1])
    y = mean + noise * torch.randn(FIELDS, generator=g)
    return x, y.unsqueeze(1)


class GaussianHead(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(FEATS, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.mean = nn.Linear(width, 1)
        self.raw_var = nn.Linear(width, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.mean(h), nn.functional.softplus(self.raw_var(h)) + 1e-3


class Standardise:
    """z-scores of the current batch, so that regions with other units fit in"""

    def __call__(self, y):
        centre = y.mean(dim=0, keepdim=True)
        spread = y.std(dim=0, keepdim=True)
        return (y - centre) / (spread + 1e-6)


def run_epoch(model, loader, opt, norm, epoch, step):
    total, seen = 0.0, 0
    for x, y in loader:
        z = norm(y)
        mean, var = model(x)
        loss = nn.functional.gaussian_nll_loss(mean, z, var)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.item() * len(x)
        seen += len(x)
        if step % 10 == 0:
            print(f"epoch {epoch} step {step} nll {loss.item():.4f}")
        step += 1
    print(f"== epoch {epoch} mean nll {total / seen:.4f}")
    return step


def main():
    x, y = make_fields()
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True,
                        generator=torch.Generator().manual_seed(1))
    model = GaussianHead()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    norm = Standardise()
    step = 0
    for epoch in range(7):
        step = run_epoch(model, loader, opt, norm, epoch, step)


if __name__ == "__main__":
    main()
