"""Spoken-word spotting on 20x24 log-spectra, loaded by worker processes."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(21)
N_WORDS, N_SPEAKERS, TAKES = 12, 24, 6


def record():
    g = np.random.default_rng(77)
    f = np.arange(24)[:, None]
    t = np.arange(20)[None, :]
    words = g.uniform(0, 1, (N_WORDS, 3, 4))
    store = {}
    for w in range(N_WORDS):
        for s in range(N_SPEAKERS):
            sg = np.random.default_rng(1000 + s)
            pitch, tilt = sg.normal(0, 1.5), sg.normal(0, 0.04)
            quirk = np.random.default_rng(5000 + 100 * w + s).normal(0, 1, (3, 3)) * [2.1, 1.7, 1.0]
            for k in range(TAKES):
                spec = 0.35 * g.normal(0, 1, (24, 20)) + tilt * f
                for b in range(3):
                    a = words[w, b]
                    c = 3 + 18 * a[0] + pitch + quirk[b, 0] + g.normal(0, 0.3) + (a[1] - 0.5) * 0.5 * (t - 10)
                    m = 3 + 14 * a[2] + quirk[b, 1] + g.normal(0, 0.4)
                    spec = spec + (1.4 + 0.2 * quirk[b, 2]) * np.exp(-(f - c) ** 2 / 4 - (t - m) ** 2 / (8 + 20 * a[3]))
                store[f"{w}_spk{s:02d}_{k}"] = spec.astype(np.float32)
    return store


class Clips(Dataset):
    def __init__(self, store, names, augment):
        self.store, self.names, self.augment = store, names, augment

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        name = self.names[i]
        spec = torch.from_numpy(self.store[name]).clone()
        label = int(name.split("_")[0])
        if self.augment:
            b = int(torch.randint(0, 22, (1,)))
            spec[b:b + 2] = 0
            spec = torch.roll(spec, int(torch.randint(-2, 3, (1,))), dims=1)
        return spec[None], label


def split(names):
    speakers = sorted({n.split("_")[1] for n in names})
    held = set(np.random.default_rng(4).permutation(speakers)[:6])
    return [n for n in names if n.split("_")[1] not in held], [n for n in names if n.split("_")[1] in held]


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2))


def validate(net, loader):
    net.eval()
    right = total = 0
    loss = 0.0
    with torch.no_grad():
        for spec, label in loader:
            out = net(spec)
            loss += nn.functional.cross_entropy(out, label, reduction="sum").item()
            right += (out.argmax(1) == label).sum().item()
            total += label.numel()
    return loss / total, right / total


def main():
    store = record()
    names = list(store)
    train_names, val_names = split(names)
    train_loader = DataLoader(Clips(store, train_names, True), batch_size=64, shuffle=True, num_workers=2, persistent_workers=True)
    val_loader = DataLoader(Clips(store, val_names, False), batch_size=32, num_workers=1, persistent_workers=True)
    net = nn.Sequential(block(1, 16), block(16, 32), nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 6 * 5, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, N_WORDS))
    opt = torch.optim.Adam(net.parameters(), lr=1.5e-3)
    for epoch in range(8):
        net.train()
        seen = good = 0
        run = 0.0
        for spec, label in train_loader:
            opt.zero_grad()
            out = net(spec)
            loss = nn.functional.cross_entropy(out, label)
            loss.backward()
            opt.step()
            seen += len(label)
            run += loss.item() * len(label)
            good += (out.argmax(1) == label).sum().item()
        vl, va = validate(net, val_loader)
        print(f"epoch {epoch + 1}: train {run / seen:.3f} / {good / seen:.3f}   val {vl:.3f} / {va:.3f}")
    print(f"val accuracy {va:.4f} val loss {vl:.4f}")


if __name__ == "__main__":
    main()
