"""Keyword spotting on Speech Commands with log-mel features and a small CNN."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchaudio
from torch.utils.data import DataLoader, Dataset
from torchaudio.datasets import SPEECHCOMMANDS

LABELS = ["yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"]
RATE = 16000


class Commands(Dataset):
    def __init__(self, subset, augment=False):
        base = SPEECHCOMMANDS("data", download=True, subset=subset)
        keep = [i for i in range(len(base)) if base.get_metadata(i)[2] in LABELS]
        self.base, self.keep, self.augment = base, keep, augment

    def __len__(self):
        return len(self.keep)

    def __getitem__(self, i):
        wave, rate, word, *_ = self.base[self.keep[i]]
        if rate != RATE:
            wave = torchaudio.functional.resample(wave, rate, RATE)
        wave = wave[0, :RATE]
        wave = F.pad(wave, (0, RATE - wave.numel()))
        if self.augment:
            shift = int(torch.randint(-1600, 1601, (1,)))
            wave = torch.roll(wave, shift)
            wave = wave + 0.005 * torch.randn_like(wave)
        return wave, LABELS.index(word)


class LogMel(nn.Module):
    def __init__(self, n_mels=40):
        super().__init__()
        self.mel = torchaudio.transforms.MelSpectrogram(RATE, n_fft=400, hop_length=160, n_mels=n_mels)
        self.mask = nn.Sequential(
            torchaudio.transforms.FrequencyMasking(6), torchaudio.transforms.TimeMasking(15))

    def forward(self, wave):
        with torch.autocast(wave.device.type, enabled=False):
            x = torch.log(self.mel(wave) + 1e-6)
        x = (x - x.mean(dim=(1, 2), keepdim=True)) / (x.std(dim=(1, 2), keepdim=True) + 1e-5)
        if self.training:
            x = self.mask(x)
        return x.unsqueeze(1)


class KeywordNet(nn.Module):
    def __init__(self, classes, width=48):
        super().__init__()
        self.features = LogMel()
        layers, c = [], 1
        for k in range(4):
            layers += [nn.Conv2d(c, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            if k < 3:
                layers.append(nn.MaxPool2d(2))
            c = width
        self.conv = nn.Sequential(*layers)
        self.fc = nn.Sequential(nn.Dropout(0.3), nn.Linear(width, classes))

    def forward(self, wave):
        h = self.conv(self.features(wave))
        return self.fc(h.mean(dim=(2, 3)))


class Trainer:
    def __init__(self, epochs=30, lr=2e-3, batch_size=128):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.epochs = epochs
        self.train_dl = DataLoader(Commands("training", augment=True), batch_size, shuffle=True, num_workers=8)
        self.val_dl = DataLoader(Commands("validation"), batch_size, num_workers=4)
        self.test_dl = DataLoader(Commands("testing"), batch_size, num_workers=4)
        self.model = KeywordNet(len(LABELS)).to(self.device)
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.05)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=1e-2)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=epochs)
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.device.type == "cuda")
        self.best = 0.0

    def train_epoch(self):
        self.model.train()
        for wave, label in self.train_dl:
            wave, label = wave.to(self.device), label.to(self.device)
            self.opt.zero_grad(set_to_none=True)
            with torch.autocast(self.device.type, torch.float16, enabled=self.device.type == "cuda"):
                loss = self.loss(self.model(wave), label)
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.opt)
            nn.utils.clip_grad_norm_(self.model.parameters(), 2.0)
            self.scaler.step(self.opt)
            self.scaler.update()

    @torch.inference_mode()
    def accuracy(self, loader):
        self.model.eval()
        hits = total = 0
        for wave, label in loader:
            pred = self.model(wave.to(self.device)).argmax(dim=1).cpu()
            hits += (pred == label).sum().item()
            total += label.size(0)
        return hits / total

    def fit(self, path="keyword.pt"):
        for epoch in range(self.epochs):
            self.train_epoch()
            self.sched.step()
            acc = self.accuracy(self.val_dl)
            print(f"epoch {epoch + 1}/{self.epochs} val acc {acc:.4f}")
            if acc > self.best:
                self.best = acc
                torch.save(self.model.state_dict(), path)
        self.model.load_state_dict(torch.load(path, map_location=self.device))
        print(f"best val {self.best:.4f} test {self.accuracy(self.test_dl):.4f}")


if __name__ == "__main__":
    torch.manual_seed(42)
    Trainer().fit()
