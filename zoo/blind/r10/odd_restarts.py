"""Character model of an artificial language, cosine schedule with warm restarts.

Input and output layer share one matrix. At every restart the learning rate jumps
back up and the loss with it; a snapshot is taken at the end of each cycle and
the last snapshots are averaged in probability at the end. The source is a known
Markov grammar, so the attainable loss is printed too.
"""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SYMBOLS, CONTEXT, BATCH = 24, 32, 64


def language(n, seed, order2):
    rng = np.random.default_rng(seed)
    out = [0, 1]
    u = rng.random(n)
    cumulative = order2.cumsum(-1)
    for i in range(n):
        out.append(int(np.searchsorted(cumulative[out[-2], out[-1]], u[i]).clip(0, SYMBOLS - 1)))
    return torch.tensor(out)


def grammar(seed=3):
    rng = np.random.default_rng(seed)
    first = rng.gamma(0.25, 1.0, (SYMBOLS, 1, SYMBOLS))
    second = rng.gamma(0.25, 1.0, (1, SYMBOLS, SYMBOLS))
    p = first * second + 1e-4
    return p / p.sum(-1, keepdims=True)


class CharModel(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, width)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.project = nn.Linear(width, width)
        self.out = nn.Linear(width, SYMBOLS)
        self.out.weight = self.embed.weight             # shared on purpose

    def forward(self, x):
        h, _ = self.gru(self.embed(x))
        return self.out(self.project(h))


def windows(text, starts):
    index = starts[:, None] + torch.arange(CONTEXT + 1)[None]
    chunk = text[index]
    return chunk[:, :-1], chunk[:, 1:]


@torch.no_grad()
def log_probs(model, text):
    model.eval()
    x, y = windows(text, torch.arange(0, len(text) - CONTEXT - 1, CONTEXT))
    return model(x).log_softmax(2), y


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    table = grammar()
    train, val, test = (language(n, s, table) for n, s in ((60000, 1), (12000, 2), (20000, 3)))
    t = test.numpy()
    ideal = -np.log(table[t[:-2], t[1:-1], t[2:]]).mean()
    print(f"uniform {math.log(SYMBOLS):.3f}, attainable (the grammar itself) {ideal:.3f}")

    model = CharModel()
    print(f"{sum(p.numel() for p in model.parameters())} parameters, input and output matrix counted once")
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    epochs, steps = 15, 40
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=5 * steps, eta_min=1e-5)
    snapshots = []
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for _ in range(steps):
            x, y = windows(train, torch.randint(0, len(train) - CONTEXT - 1, (BATCH,)))
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            lr = schedule.get_last_lr()[0]
            schedule.step()                              # the cycle is counted in steps
            total += loss.item()
        logp, y = log_probs(model, val)
        val_loss = F.nll_loss(logp.flatten(0, 1), y.flatten()).item()
        print(f"epoch {epoch:2d} last lr {lr:.5f} train loss {total / steps:.4f} val loss {val_loss:.4f}")
        if epoch % 5 == 0:
            snapshots.append({k: v.clone() for k, v in model.state_dict().items()})
            print(f"   end of cycle {epoch // 5}: snapshot taken")

    parts = []
    for state in snapshots[-2:]:
        model.load_state_dict(state)
        logp, y = log_probs(model, test)
        parts.append(logp)
        print(f"snapshot: test loss {F.nll_loss(logp.flatten(0, 1), y.flatten()):.4f}")
    mixed = torch.stack(parts).logsumexp(0) - math.log(len(parts))
    print(f"average of snapshots: test loss {F.nll_loss(mixed.flatten(0, 1), y.flatten()):.4f}")


if __name__ == "__main__":
    main()
