"""Tagging of sound events in short clips (log-mel input, several tags per clip).

The clips are cut from longer field recordings; every recording has its own
microphone, background and habits (some places have mostly dogs and cars,
others mostly birds). We report mean average precision over the tags.
"""
import argparse
import copy
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import average_precision_score
from torch.utils.data import DataLoader, Dataset

TAGS = ["siren", "dog", "bird", "engine", "footsteps", "speech", "bell", "rain"]
N_MELS, N_FRAMES = 40, 64


def draw_event(spec, tag, rng):
    """Add the energy of one event to spec (frames x mels), in place."""
    t0 = rng.integers(0, N_FRAMES - 24)
    length = int(rng.integers(14, 24))
    t = np.arange(length)
    gain = rng.uniform(0.9, 2.2)
    mel = np.arange(N_MELS)
    if tag == 0:        # siren: slow sweep up and down
        centre = 22 + 7 * np.sin(2 * np.pi * t / rng.uniform(14, 20))
        patch = np.exp(-0.5 * ((mel[None] - centre[:, None]) / 1.2) ** 2)
    elif tag == 1:      # dog: two or three broad barks
        env = (np.sin(2 * np.pi * t / rng.uniform(6, 9)) > 0.5).astype(float)
        patch = env[:, None] * np.exp(-0.5 * ((mel[None] - 16) / 4.5) ** 2)
    elif tag == 2:      # bird: fast chirps in the high bands
        centre = 31 + 4 * ((t % 5) / 5.0)
        patch = np.exp(-0.5 * ((mel[None] - centre[:, None]) / 1.0) ** 2)
    elif tag == 3:      # engine: steady low harmonics
        patch = np.ones((length, 1)) * np.isin(mel, [3, 6, 9, 12])[None]
    elif tag == 4:      # footsteps: regular clicks over all bands
        patch = (t % 7 == 0)[:, None] * np.ones((1, N_MELS)) * 0.9
    elif tag == 5:      # speech: formants that wander
        c1 = 10 + np.cumsum(rng.normal(0, 0.7, length))
        c2 = 20 + np.cumsum(rng.normal(0, 0.7, length))
        patch = sum(np.exp(-0.5 * ((mel[None] - c[:, None]) / 1.5) ** 2) for c in (c1, c2))
    elif tag == 6:      # bell: sharp onset, decay, two partials
        patch = np.exp(-t / 6.0)[:, None] * np.isin(mel, [18, 27])[None] * 1.6
    else:               # rain: noise in the upper half
        patch = rng.uniform(0, 1, (length, N_MELS)) * (mel > 18)[None] * 0.8
    spec[t0:t0 + length] += gain * patch


def make_recordings(n_recordings=84, clips_each=12, seed=7):
    rng = np.random.default_rng(seed)
    feats, labels, groups = [], [], []
    for rec in range(n_recordings):
        colour = np.cumsum(rng.normal(0, 0.25, N_MELS))
        colour -= colour.mean()
        habit = np.full(len(TAGS), 0.06)
        habit[rng.choice(len(TAGS), 3, replace=False)] = rng.uniform(0.4, 0.8, 3)
        for _ in range(clips_each):
            y = (rng.random(len(TAGS)) < habit).astype(np.float32)
            spec = rng.gamma(2.0, 0.35, (N_FRAMES, N_MELS))
            for tag in np.flatnonzero(y):
                draw_event(spec, tag, rng)
            feats.append(np.log(spec + 1e-2) + colour[None])
            labels.append(y)
            groups.append(rec)
    return np.stack(feats).astype(np.float32), np.stack(labels), np.array(groups)


def split_clips(groups, seed=1):
    rng = np.random.default_rng(seed)
    units = rng.permutation(np.unique(groups))
    n = len(units)
    a, b = int(0.66 * n), int(0.82 * n)
    parts = units[:a], units[a:b], units[b:]
    return [np.flatnonzero(np.isin(groups, part)) for part in parts]


class ClipSet(Dataset):
    def __init__(self, feats, labels, mean, std, augment=False):
        self.feats = (feats - mean) / std
        self.labels = labels
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        x = torch.from_numpy(self.feats[i]).T.clone()        # mels x frames
        if self.augment:
            x = torch.roll(x, int(torch.randint(N_FRAMES, (1,))), dims=1)
            f = int(torch.randint(0, N_MELS - 4, (1,)))
            x[f:f + 4] = 0.0
        return x[None], torch.from_numpy(self.labels[i])


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False),
                         nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(2))


class Tagger(nn.Module):
    def __init__(self, n_tags, width=16, dropout=0.3):
        super().__init__()
        self.body = nn.Sequential(block(1, width), block(width, 2 * width), block(2 * width, 4 * width))
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(4 * width * (N_MELS // 8), n_tags)

    def forward(self, x):
        h = self.body(x)                                     # B x C x mel x time
        h = h.amax(dim=3).flatten(1)
        return self.head(self.drop(h))


def make_loader(dataset, batch_size, train):
    return DataLoader(dataset, batch_size, shuffle=train, drop_last=train)


def train_epoch(model, loader, optimizer):
    model.train()
    total, count = 0.0, 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
        count += len(x)
    return total / count


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    scores, total = [], 0.0
    for x, y in loader:
        logits = model(x)
        total += F.binary_cross_entropy_with_logits(logits, y, reduction="sum").item()
        scores.append(torch.sigmoid(logits))
    scores = torch.cat(scores).numpy()
    truth = loader.dataset.labels
    per_tag = [average_precision_score(truth[:, k], scores[:, k]) for k in range(truth.shape[1])]
    return total / truth.size, np.array(per_tag)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)

    feats, labels, groups = make_recordings()
    train_idx, val_idx, test_idx = split_clips(groups)
    mean = feats[train_idx].mean(axis=(0, 1))
    std = feats[train_idx].std(axis=(0, 1))
    train, val, test = (ClipSet(feats[i], labels[i], mean, std, augment=(i is train_idx))
                        for i in (train_idx, val_idx, test_idx))
    loaders = [make_loader(d, args.batch, d.augment) for d in (train, val, test)]
    print(f"clips {len(train)}/{len(val)}/{len(test)}, tags per clip {labels.mean(0).sum():.2f}, "
          f"mAP of a constant score {val.labels.mean():.3f}")

    model = Tagger(len(TAGS))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    loss0, ap0 = evaluate(model, loaders[1])
    print(f"untrained: val loss {loss0:.4f} val mAP {ap0.mean():.3f}")

    best, best_state, start = -1.0, None, time.time()
    for epoch in range(1, args.epochs + 1):
        train_loss = train_epoch(model, loaders[0], optimizer)
        schedule.step()
        val_loss, ap = evaluate(model, loaders[1])
        if ap.mean() > best:
            best, best_state = ap.mean(), copy.deepcopy(model.state_dict())
        print(f"epoch {epoch:2d} train loss {train_loss:.4f} val loss {val_loss:.4f} "
              f"val mAP {ap.mean():.3f} ({time.time() - start:.0f} s)")

    model.load_state_dict(best_state)
    test_loss, ap = evaluate(model, loaders[2])
    print("per tag: " + " ".join(f"{t} {a:.2f}" for t, a in zip(TAGS, ap)))
    print(f"test loss {test_loss:.4f} test mAP {ap.mean():.3f} (best val mAP {best:.3f})")


if __name__ == "__main__":
    main()
