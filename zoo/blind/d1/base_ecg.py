"""Beat classification from short single-lead recordings, several recordings per patient."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

N_PATIENTS, PER_PATIENT, LENGTH = 100, 10, 64


def make_cohort(seed):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, LENGTH)
    signals, labels, patients = [], [], []
    for p in range(N_PATIENTS):
        label = int(p >= N_PATIENTS // 2)
        phases = rng.uniform(0, 2 * np.pi, 4)
        amps = rng.normal(0, 0.8, 4)
        own = sum(a * np.sin(2 * np.pi * (k + 1) * t + ph) for k, (a, ph) in enumerate(zip(amps, phases)))
        strength = rng.normal(2.0, 0.5) if label else rng.normal(0.6, 0.5)
        for _ in range(PER_PATIENT):
            centre = rng.uniform(0.25, 0.75)
            bump = strength * np.exp(-((t - centre) / 0.03) ** 2)
            signals.append(own + bump + rng.normal(0, 0.25, LENGTH))
            labels.append(label)
            patients.append(p)
    return np.array(signals, dtype="float32"), np.array(labels), np.array(patients)


class Recordings(Dataset):
    def __init__(self, signals, labels, augment):
        self.signals = torch.from_numpy(signals)
        self.labels = torch.from_numpy(labels)
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        x = self.signals[i].clone()
        if self.augment:
            x += 0.35 * torch.randn(LENGTH)
            x *= 0.7 + 0.6 * torch.rand(1)
        return {"x": x.unsqueeze(0), "y": self.labels[i]}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 16, 7, padding=3), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(16, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(),
            nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 2))

    def forward(self, x):
        return self.body(x)


class Trainer:
    def __init__(self, model, train_loader, val_loader):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
        self.loss = nn.CrossEntropyLoss()

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for batch in self.train_loader:
            self.opt.zero_grad()
            loss = self.loss(self.model(batch["x"]), batch["y"])
            loss.backward()
            self.opt.step()
            total += loss.item() * len(batch["y"])
        return total / len(self.train_loader.dataset)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total, correct = 0.0, 0
        for batch in self.val_loader:
            out = self.model(batch["x"])
            total += self.loss(out, batch["y"]).item() * len(batch["y"])
            correct += (out.argmax(1) == batch["y"]).sum().item()
        n = len(self.val_loader.dataset)
        return total / n, correct / n


def main():
    torch.manual_seed(3)
    signals, labels, patients = make_cohort(seed=3)
    held_out = np.random.default_rng(11).permutation(N_PATIENTS)[:25]
    val_mask = np.isin(patients, held_out)
    train_set = Recordings(signals[~val_mask], labels[~val_mask], augment=True)
    val_set = Recordings(signals[val_mask], labels[val_mask], augment=False)
    train_loader = DataLoader(train_set, batch_size=30, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=20)
    trainer = Trainer(Net(), train_loader, val_loader)
    for epoch in range(8):
        train_loss = trainer.train_epoch()
        val_loss, val_acc = trainer.validate()
        print(f"[{epoch:02d}] train_loss={train_loss:.4f} val_loss={val_loss:.4f} val_acc={val_acc:.3f}")


if __name__ == "__main__":
    main()
