"""RealNVP density estimation on a tabular data set (rows in a .npy file)."""
import math
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn


@dataclass
class FlowConfig:
    path: str = "power.npy"
    n_layers: int = 8
    hidden: int = 128
    lr: float = 5e-4
    weight_decay: float = 1e-6
    batch_size: int = 256
    max_epochs: int = 200
    patience: int = 20
    fractions: tuple = field(default=(0.8, 0.1))
    seed: int = 0


def load(cfg):
    rng = np.random.RandomState(cfg.seed)
    rows = np.load(cfg.path).astype(np.float32)
    rows = rows[rng.permutation(len(rows))]
    a = int(cfg.fractions[0] * len(rows))
    b = a + int(cfg.fractions[1] * len(rows))
    mean, std = rows[:a].mean(axis=0), rows[:a].std(axis=0) + 1e-6
    rows = (rows - mean) / std
    return torch.from_numpy(rows[:a]), torch.from_numpy(rows[a:b]), torch.from_numpy(rows[b:]), mean, std


class Coupling(nn.Module):
    def __init__(self, dim, hidden, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, 2 * dim))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def params(self, kept):
        s, t = self.net(kept).chunk(2, dim=1)
        free = 1 - self.mask
        return 2.0 * torch.tanh(s / 2.0) * free, t * free

    def forward(self, x):
        s, t = self.params(x * self.mask)
        return x * torch.exp(s) + t, s.sum(dim=1)

    def inverse(self, z):
        s, t = self.params(z * self.mask)
        return (z - t) * torch.exp(-s)


class ActNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.shift = nn.Parameter(torch.zeros(dim))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x):
        if self.training and not self.ready:
            with torch.no_grad():
                self.log_scale.copy_(-torch.log(x.std(dim=0) + 1e-6))
                self.shift.copy_(-x.mean(dim=0))
                self.ready.fill_(True)
        z = (x + self.shift) * torch.exp(self.log_scale)
        return z, self.log_scale.sum().expand(x.size(0))

    def inverse(self, z):
        return z * torch.exp(-self.log_scale) - self.shift


class RealNVP(nn.Module):
    def __init__(self, dim, n_layers, hidden):
        super().__init__()
        base = (torch.arange(dim) % 2).float()
        layers = []
        for i in range(n_layers):
            layers += [ActNorm(dim), Coupling(dim, hidden, base if i % 2 == 0 else 1 - base)]
        self.layers = nn.ModuleList(layers)
        self.dim = dim

    def log_prob(self, x):
        log_det = torch.zeros(x.size(0), device=x.device)
        for layer in self.layers:
            x, ld = layer(x)
            log_det = log_det + ld
        log_base = -0.5 * (x.pow(2) + math.log(2 * math.pi)).sum(dim=1)
        return log_base + log_det

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, self.dim, device=next(self.parameters()).device)
        for layer in reversed(self.layers):
            x = layer.inverse(x)
        return x


def mean_log_prob(flow, data, device):
    flow.eval()
    with torch.no_grad():
        total = sum(flow.log_prob(part.to(device)).sum().item() for part in data.split(4096))
    return total / len(data)


def train(cfg):
    torch.manual_seed(cfg.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_x, val_x, test_x, mean, std = load(cfg)
    flow = RealNVP(train_x.size(1), cfg.n_layers, cfg.hidden).to(device)
    optimizer = torch.optim.Adam(flow.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
    best, best_state, waited = -float("inf"), None, 0
    for epoch in range(cfg.max_epochs):
        flow.train()
        order = torch.randperm(len(train_x))
        total = 0.0
        for idx in order.split(cfg.batch_size):
            loss = -flow.log_prob(train_x[idx].to(device)).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
            optimizer.step()
            total += loss.item() * len(idx)
        val = mean_log_prob(flow, val_x, device)
        print(f"epoch {epoch} train nll {total / len(train_x):.4f} val log-likelihood {val:.4f}")
        if val > best:
            best, waited = val, 0
            best_state = {k: v.detach().clone() for k, v in flow.state_dict().items()}
        else:
            waited += 1
            if waited >= cfg.patience:
                break
    flow.load_state_dict(best_state)
    # log-likelihood in the units of the raw rows
    test = mean_log_prob(flow, test_x, device) - float(np.log(std).sum())
    print(f"best val {best:.4f}, test log-likelihood in raw units {test:.4f}")
    samples = flow.sample(1000).cpu().numpy() * std + mean
    np.save("flow_samples.npy", samples)
    torch.save({"flow": best_state, "mean": mean, "std": std, "cfg": cfg}, "flow.pt")


if __name__ == "__main__":
    train(FlowConfig())
