import math
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

N_ITEMS, MAX_LEN, PAD = 50, 12, 0


def simulate(n, seed):
    """Users alternate between two threads: what they click next follows what they saw two clicks ago."""
    rng = np.random.default_rng(seed)
    nxt = np.random.default_rng(99).permutation(N_ITEMS) + 1
    out = []
    for _ in range(n):
        s = list(rng.integers(1, N_ITEMS + 1, 2))
        for _ in range(rng.integers(4, MAX_LEN - 1)):
            s.append(int(nxt[s[-2] - 1]) if rng.random() < 0.9 else int(rng.integers(1, N_ITEMS + 1)))
        out.append(s)
    return out


class Sessions(Dataset):
    def __init__(self, sessions):
        self.sessions = sessions

    def __len__(self):
        return len(self.sessions)

    def __getitem__(self, i):
        s = self.sessions[i]
        inp = torch.full((MAX_LEN,), PAD)
        tgt = torch.full((MAX_LEN,), PAD)
        inp[:len(s) - 1] = torch.tensor(s[:-1])
        tgt[:len(s) - 1] = torch.tensor(s[1:])
        return inp, tgt


class GRURec(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.items = nn.Embedding(N_ITEMS + 1, d, padding_idx=PAD)
        self.gru = nn.GRU(d, 64, batch_first=True)
        self.out = nn.Linear(64, N_ITEMS + 1)

    def forward(self, x):
        h, _ = self.gru(self.items(x))
        return self.out(h)


def recall(model, sessions, k=3):
    model.eval()
    hits = 0
    with torch.no_grad():
        for chunk in range(0, len(sessions), 64):
            part = sessions[chunk:chunk + 64]
            inp = torch.full((len(part), MAX_LEN), PAD)
            for i, s in enumerate(part):
                inp[i, :len(s) - 1] = torch.tensor(s[:-1])
            pos = torch.tensor([len(s) - 2 for s in part])
            scores = model(inp)[torch.arange(len(part)), pos]
            top = scores.topk(k, dim=1).indices
            hits += sum(s[-1] in t for s, t in zip(part, top.tolist()))
    model.train()
    return hits / len(sessions)


def main():
    torch.manual_seed(3)
    train, val = simulate(1200, 0), simulate(200, 1)
    loader = DataLoader(Sessions(train), batch_size=48, shuffle=True)
    model = GRURec()
    opt = torch.optim.AdamW(model.parameters(), lr=8e-3, weight_decay=1e-4)
    epochs = 8
    warmup, total = 80, epochs * len(loader)
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda s: (s + 1) / warmup if s < warmup else 0.5 * (1 + math.cos(math.pi * (s - warmup) / (total - warmup))))
    for epoch in range(epochs):
        losses = []
        for inp, tgt in loader:
            logits = model(inp)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tgt.flatten(), ignore_index=PAD)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            sched.step()
            losses.append(loss.item())
        print(f"[{epoch:02d}] train loss {np.mean(losses):.3f} | val recall@3 {recall(model, val):.3f}")


if __name__ == "__main__":
    main()
