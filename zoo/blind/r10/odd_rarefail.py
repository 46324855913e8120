"""Failures of pumps within the next week: about 1 positive window in 70.

The training batches are balanced by a weighted sampler; validation and test keep the
natural rate. The logits are moved back to the natural rate before probabilities are
read off, and we look at average precision and calibration, not at accuracy.
"""
import copy
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import average_precision_score, roc_auc_score
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

N_SENSORS, WINDOW = 4, 32


def make_pumps(n_pumps, per_pump, seed):
    """Windows of vibration, temperature, flow and current; splits never share a pump."""
    rng = np.random.default_rng(seed)
    xs, ys = [], []
    t = np.arange(WINDOW)
    for _ in range(n_pumps):
        level = rng.normal(0, 0.5, N_SENSORS)
        for _ in range(per_pump):
            x = level[:, None] + rng.normal(0, 0.6, (N_SENSORS, WINDOW))
            x += 0.5 * np.sin(2 * np.pi * t / 16 + rng.uniform(0, 6.3))
            wear = rng.random() < 0.03
            if wear:
                growth = rng.uniform(0.5, 1.6) * (t / WINDOW) ** 2
                x[0] += growth * np.sin(2 * np.pi * t / 3)
                x[1] += growth
                x[3] += 0.6 * growth
            ys.append(float(rng.random() < (0.42 if wear else 0.0015)))
            xs.append(x)
    return torch.tensor(np.stack(xs), dtype=torch.float32), torch.tensor(ys)


class PumpNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(N_SENSORS, width, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
                                  nn.Conv1d(width, width, 5, padding=2), nn.ReLU())
        self.head = nn.Sequential(nn.Dropout(0.3), nn.Linear(2 * width, 1))

    def forward(self, x):
        h = self.conv(x)
        return self.head(torch.cat([h.mean(2), h.amax(2)], dim=1)).squeeze(1)


@torch.no_grad()
def evaluate(model, x, y, shift):
    model.eval()
    logits = torch.cat([model(part) for part in x.split(2000)]) + shift
    p = logits.sigmoid()
    return {"logloss": F.binary_cross_entropy_with_logits(logits, y).item(),
            "AP": average_precision_score(y.numpy(), p.numpy()),
            "AUC": roc_auc_score(y.numpy(), p.numpy()),
            "expected": p.sum().item(), "failures": int(y.sum().item())}


def text(scores):
    return " ".join(f"{k} {v:.4f}" if isinstance(v, float) else f"{k} {v}" for k, v in scores.items())


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train, val, test = make_pumps(250, 80, 1), make_pumps(80, 80, 2), make_pumps(120, 80, 3)
    mean, std = train[0].mean((0, 2), keepdim=True), train[0].std((0, 2), keepdim=True)
    train, val, test = [((x - mean) / std, y) for x, y in (train, val, test)]

    rate = train[1].mean().item()
    weights = torch.where(train[1] == 1, 0.5 / rate, 0.5 / (1 - rate))
    sampler = WeightedRandomSampler(weights, num_samples=len(weights) // 2)
    loader = DataLoader(TensorDataset(*train), batch_size=128, sampler=sampler)
    shift = math.log(rate / (1 - rate))                 # balanced batches have odds of one
    print(f"rate {rate:.4f}; accuracy of 'never fails' {1 - val[1].mean():.4f}; "
          f"AP of chance {val[1].mean():.4f}")

    model = PumpNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=7e-4, weight_decay=1e-2)
    best, state = float("inf"), None
    for epoch in range(1, 9):
        model.train()
        losses, share = [], []
        for x, y in loader:
            loss = F.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            share.append(y.mean().item())
        scores = evaluate(model, *val, shift)
        if scores["logloss"] < best:
            best, state = scores["logloss"], copy.deepcopy(model.state_dict())
        print(f"epoch {epoch:2d} balanced loss {np.mean(losses):.4f} (positives {np.mean(share):.2f}) | "
              f"val {text(scores)}")
    model.load_state_dict(state)
    print(f"test {text(evaluate(model, *test, shift))}")


if __name__ == "__main__":
    main()
