"""Keyword spotting on synthetic log-mel features (conv front end + GRU)."""
import random
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

N_MELS, MAX_T, N_WORDS = 20, 48, 8
EPOCHS = 8


def synth(word, gen):
    """A word is an ordered pair of phones with different band trajectories."""
    a, b = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1), (0, 3), (3, 0)][word]
    t_len = int(torch.randint(28, MAX_T + 1, (1,), generator=gen))
    cut = t_len // 2 + int(torch.randint(-3, 4, (1,), generator=gen))
    bands = torch.arange(N_MELS).float()[:, None]
    t = torch.arange(t_len).float()[None]
    centre = {0: 4 + 0 * t, 1: 15 + 0 * t, 2: 9 + 3 * torch.sin(t / 2), 3: 12 - 5 * torch.cos(t / 3)}
    shift = torch.rand(1, generator=gen) * 4 - 2
    track = torch.where(t < cut, centre[a], centre[b]) + shift
    mel = 2.2 * torch.exp(-((bands - track) ** 2) / 4) + 0.7 * torch.randn(N_MELS, t_len, generator=gen)
    return mel


class Keywords(Dataset):
    def __init__(self, n, seed, augment=False):
        gen = torch.Generator().manual_seed(seed)
        self.words = [i % N_WORDS for i in range(n)]
        self.feats = [synth(w, gen) for w in self.words]
        self.augment = augment

    def __len__(self):
        return len(self.feats)

    def __getitem__(self, i):
        x = self.feats[i].clone()
        if self.augment:
            f0 = random.randint(0, N_MELS - 3)
            x[f0:f0 + random.randint(1, 3)] = 0.0
            t0 = random.randint(0, x.shape[1] - 6)
            x[:, t0:t0 + random.randint(1, 6)] = 0.0
        return x, self.words[i]


def pad_batch(items):
    lens = torch.tensor([x.shape[1] for x, _ in items])
    out = torch.zeros(len(items), N_MELS, MAX_T)
    for k, (x, _) in enumerate(items):
        out[k, :, : x.shape[1]] = x
    return out, lens, torch.tensor([w for _, w in items])


class ConvGRU(nn.Module):
    def __init__(self, channels=24, hidden=32):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(N_MELS, channels, 5, padding=2), nn.BatchNorm1d(channels), nn.ReLU(),
            nn.Conv1d(channels, channels, 3, stride=2, padding=1), nn.ReLU(),
        )
        self.gru = nn.GRU(channels, hidden, batch_first=True)
        self.head = nn.Linear(hidden, N_WORDS)

    def forward(self, x, lens):
        h = self.front(x).transpose(1, 2)
        out, _ = self.gru(h)
        last = torch.div(lens - 1, 2, rounding_mode="floor")
        return self.head(out[torch.arange(len(out)), last])


def evaluate(model, loader):
    model.eval()
    hits = n = 0
    with torch.no_grad():
        for x, lens, y in loader:
            hits += (model(x, lens).argmax(1) == y).sum().item()
            n += len(y)
    return hits / n


if __name__ == "__main__":
    random.seed(3)
    torch.manual_seed(3)
    train_dl = DataLoader(Keywords(384, 10, augment=True), batch_size=24, shuffle=True, collate_fn=pad_batch)
    test_dl = DataLoader(Keywords(160, 20), batch_size=80, collate_fn=pad_batch)
    model = ConvGRU()
    criterion = nn.CrossEntropyLoss()
    optim = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.StepLR(optim, step_size=4, gamma=0.3)
    for ep in range(EPOCHS):
        model.train()
        losses = []
        for x, lens, y in train_dl:
            optim.zero_grad()
            loss = criterion(model(x, lens), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optim.step()
            losses.append(loss.item())
        sched.step()
        print(f"[{ep + 1}/{EPOCHS}] train loss {sum(losses) / len(losses):.3f} | test acc {evaluate(model, test_dl):.3f}")
