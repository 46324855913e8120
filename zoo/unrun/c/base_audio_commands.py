"""Keyword spotting on SpeechCommands-like folders: data/<word>/<speaker>_nohash_<n>.wav"""
import glob
import hashlib
import math
import os
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchaudio
from torch.utils.data import DataLoader, Dataset

config = {
    "root": "data/speech_commands", "sample_rate": 16000, "n_fft": 512, "hop": 160, "n_mels": 40,
    "batch_size": 64, "epochs": 30, "lr": 1e-3, "mixup_alpha": 0.2, "seed": 3, "ckpt": "kws.pt",
}
words = ["yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"]


def split_of(path):
    speaker = os.path.basename(path).split("_nohash_")[0]
    bucket = int(hashlib.sha1(speaker.encode()).hexdigest(), 16) % 100
    return "val" if bucket < 10 else "test" if bucket < 20 else "train"


def mel_filters(sr, n_fft, n_mels):
    def to_mel(f):
        return 2595 * math.log10(1 + f / 700)
    mels = torch.linspace(to_mel(20), to_mel(sr / 2), n_mels + 2)
    hz = 700 * (10 ** (mels / 2595) - 1)
    freqs = torch.linspace(0, sr / 2, n_fft // 2 + 1)
    up = (freqs[None] - hz[:-2, None]) / (hz[1:-1] - hz[:-2])[:, None]
    down = (hz[2:, None] - freqs[None]) / (hz[2:] - hz[1:-1])[:, None]
    return torch.minimum(up, down).clamp(min=0)


class Commands(Dataset):
    def __init__(self, cfg, split):
        self.cfg, self.train = cfg, split == "train"
        self.fb = mel_filters(cfg["sample_rate"], cfg["n_fft"], cfg["n_mels"])
        self.window = torch.hann_window(cfg["n_fft"])
        self.items = []
        for label, word in enumerate(words):
            for path in sorted(glob.glob(os.path.join(cfg["root"], word, "*.wav"))):
                if split_of(path) == split:
                    self.items.append((self.features(path), label))

    def features(self, path):
        wav, sr = torchaudio.load(path)
        wav = wav.mean(0)
        if sr != self.cfg["sample_rate"]:
            wav = torchaudio.functional.resample(wav, sr, self.cfg["sample_rate"])
        wav = F.pad(wav, (0, max(0, self.cfg["sample_rate"] - wav.numel())))[: self.cfg["sample_rate"]]
        spec = torch.stft(wav, self.cfg["n_fft"], self.cfg["hop"], window=self.window, return_complex=True)
        return torch.log(self.fb @ spec.abs().pow(2) + 1e-6)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        mel, label = self.items[i]
        if self.train:
            mel = torch.roll(mel, random.randint(-10, 10), dims=1)
            f, t = random.randint(0, 32), random.randint(0, mel.size(1) - 15)
            mel[f:f + random.randint(0, 8)] = mel.mean()
            mel[:, t:t + random.randint(0, 15)] = mel.mean()
        return mel, label


def make_model(n_classes):
    layers, cin = [], 1
    for cout in (32, 64, 128):
        layers += [nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(2)]
        cin = cout
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.3), nn.Linear(cin, n_classes))


@torch.no_grad()
def accuracy(model, loader, mean, std, device):
    model.eval()
    correct = 0
    for mel, label in loader:
        logits = model(((mel.to(device) - mean) / std).unsqueeze(1))
        correct += (logits.argmax(1) == label.to(device)).sum().item()
    return correct / len(loader.dataset)


def main(cfg):
    random.seed(cfg["seed"])
    torch.manual_seed(cfg["seed"])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sets = {s: Commands(cfg, s) for s in ("train", "val", "test")}
    loaders = {s: DataLoader(d, cfg["batch_size"], shuffle=s == "train") for s, d in sets.items()}
    stack = torch.stack([mel for mel, _ in sets["train"].items])
    mean, std = stack.mean().item(), stack.std().item()

    model = make_model(len(words)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, cfg["lr"], epochs=cfg["epochs"], steps_per_epoch=len(loaders["train"]))
    beta = torch.distributions.Beta(cfg["mixup_alpha"], cfg["mixup_alpha"])
    start, best = 0, 0.0
    if os.path.exists(cfg["ckpt"] + ".last"):
        state = torch.load(cfg["ckpt"] + ".last", map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        start, best = state["epoch"] + 1, state["best"]

    for epoch in range(start, cfg["epochs"]):
        model.train()
        for mel, label in loaders["train"]:
            x, y = ((mel.to(device) - mean) / std).unsqueeze(1), label.to(device)
            lam, perm = beta.sample().item(), torch.randperm(y.size(0), device=device)
            logits = model(lam * x + (1 - lam) * x[perm])
            loss = lam * F.cross_entropy(logits, y) + (1 - lam) * F.cross_entropy(logits, y[perm])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        acc = accuracy(model, loaders["val"], mean, std, device)
        print(f"epoch {epoch} last batch loss {loss.item():.4f} val acc {acc:.4f}")
        if acc > best:
            best = acc
            torch.save(model.state_dict(), cfg["ckpt"])
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch,
                    "scheduler": scheduler.state_dict(), "best": best}, cfg["ckpt"] + ".last")
    model.load_state_dict(torch.load(cfg["ckpt"], map_location=device))
    print(f"test acc {accuracy(model, loaders['test'], mean, std, device):.4f}")


if __name__ == "__main__":
    main(config)
