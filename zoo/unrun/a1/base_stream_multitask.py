"""Multi-task monitoring of machines: state class and remaining wear per time step, GRU with carried state.

Each machine is a long recording. B machines run in parallel lanes and are read in chunks of T steps
(truncated back-propagation through time). Wear is labelled only at inspections (NaN elsewhere).
"""
import argparse
import dataclasses

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclasses.dataclass
class Options:
    path: str = "machines.npz"     # signal (M, L, D), state (M, L) int, wear (M, L) float with NaN
    chunk: int = 64
    lanes: int = 16
    hidden: int = 128
    n_states: int = 4
    epochs: int = 30
    lr: float = 1e-3
    seed: int = 8
    ckpt: str = "monitor.pt"


class Monitor(nn.Module):
    def __init__(self, d_in, opt):
        super().__init__()
        self.inp = nn.Sequential(nn.Linear(d_in, opt.hidden), nn.LayerNorm(opt.hidden), nn.ReLU())
        self.gru = nn.GRU(opt.hidden, opt.hidden, batch_first=True)
        self.state_head = nn.Linear(opt.hidden, opt.n_states)
        self.wear_head = nn.Sequential(nn.Linear(opt.hidden, 64), nn.ReLU(), nn.Linear(64, 1))
        self.log_var = nn.Parameter(torch.zeros(2))   # learned uncertainty of the two tasks

    def forward(self, x, h=None):
        out, h = self.gru(self.inp(x), h)
        return self.state_head(out), self.wear_head(out).squeeze(-1), h


class LaneReader:
    """Yields (signal, state, wear, first) chunks; a group of machines is read from start to end."""

    def __init__(self, signal, state, wear, chunk, lanes, shuffle):
        self.signal, self.state, self.wear = signal, state, wear
        self.chunk, self.lanes, self.shuffle = chunk, lanes, shuffle

    def __iter__(self):
        machines = torch.randperm(len(self.signal)) if self.shuffle else torch.arange(len(self.signal))
        length = self.signal.size(1)
        for group in machines.split(self.lanes):
            for start in range(0, length - length % self.chunk, self.chunk):
                part = slice(start, start + self.chunk)
                yield self.signal[group, part], self.state[group, part], self.wear[group, part], start == 0


def task_losses(logits, wear_pred, state, wear):
    ce = F.cross_entropy(logits.flatten(0, 1), state.flatten())
    known = ~torch.isnan(wear)
    err = (wear_pred - torch.where(known, wear, torch.zeros_like(wear))) ** 2
    mse = (err * known).sum() / known.sum().clamp(min=1)
    return ce, mse


def train_epoch(model, reader, optimizer, device):
    model.train()
    sums, steps, h = np.zeros(2), 0, None
    for x, state, wear, first in reader:
        x, state, wear = x.to(device), state.to(device), wear.to(device)
        h = None if first else h.detach()
        logits, wear_pred, h = model(x, h)
        ce, mse = task_losses(logits, wear_pred, state, wear)
        precision = torch.exp(-model.log_var)
        loss = precision[0] * ce + 0.5 * precision[1] * mse + 0.5 * model.log_var.sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        sums += [ce.item(), mse.item()]
        steps += 1
    return sums / steps


@torch.no_grad()
def evaluate(model, reader, wear_std, n_states, device):
    """Macro F1 of the state and RMSE of the wear in raw units."""
    model.eval()
    conf = torch.zeros(n_states, n_states)
    sq, n, h = 0.0, 0, None
    for x, state, wear, first in reader:
        x = x.to(device)
        logits, wear_pred, h = model(x, None if first else h)
        pred, wear_pred = logits.argmax(dim=-1).cpu(), wear_pred.cpu()
        conf.index_put_((state.flatten(), pred.flatten()), torch.ones(state.numel()), accumulate=True)
        known = ~torch.isnan(wear)
        sq += ((wear_pred - wear)[known] ** 2).sum().item()
        n += int(known.sum())
    tp = conf.diag()
    f1 = 2 * tp / (conf.sum(0) + conf.sum(1)).clamp(min=1)
    return f1.mean().item(), (sq / max(n, 1)) ** 0.5 * wear_std


def main():
    parser = argparse.ArgumentParser()
    for f in dataclasses.fields(Options):
        parser.add_argument("--" + f.name, type=f.type, default=f.default)
    opt = Options(**vars(parser.parse_args()))
    torch.manual_seed(opt.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    data = np.load(opt.path)
    signal, state, wear = data["signal"], data["state"], data["wear"]
    order = np.random.default_rng(opt.seed).permutation(len(signal))
    n_val = len(order) // 5
    va, tr = order[:n_val], order[n_val:]
    x_mean, x_std = signal[tr].mean(axis=(0, 1)), signal[tr].std(axis=(0, 1)) + 1e-6
    w_mean, w_std = np.nanmean(wear[tr]), np.nanstd(wear[tr])
    x = torch.tensor((signal - x_mean) / x_std, dtype=torch.float32)
    s = torch.tensor(state, dtype=torch.long)
    w = torch.tensor((wear - w_mean) / w_std, dtype=torch.float32)
    train = LaneReader(x[tr], s[tr], w[tr], opt.chunk, opt.lanes, shuffle=True)
    valid = LaneReader(x[va], s[va], w[va], opt.chunk, opt.lanes, shuffle=False)

    model = Monitor(x.size(2), opt).to(device)
    weights = [p for n, p in model.named_parameters() if n != "log_var"]
    optimizer = torch.optim.Adam([{"params": weights, "weight_decay": 1e-5}, {"params": [model.log_var]}], lr=opt.lr)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.95)
    best = -float("inf")
    for epoch in range(opt.epochs):
        ce, mse = train_epoch(model, train, optimizer, device)
        f1, rmse = evaluate(model, valid, w_std, opt.n_states, device)
        scheduler.step()
        print(f"{epoch:3d} ce {ce:.4f} mse {mse:.4f} | F1 {f1:.4f} RMSE {rmse:.3f} log_var {model.log_var.tolist()}")
        if f1 - rmse / w_std > best:
            best = f1 - rmse / w_std
            torch.save({"model": model.state_dict(), "x_mean": x_mean, "x_std": x_std,
                        "w_mean": w_mean, "w_std": w_std, "options": dataclasses.asdict(opt)}, opt.ckpt)


if __name__ == "__main__":
    main()
