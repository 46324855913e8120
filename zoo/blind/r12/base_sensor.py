import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import average_precision_score, roc_auc_score
from torch.utils.data import DataLoader, Dataset

CHANNELS, WIN = 3, 64


def simulate(n, rng, anomalous=False):
    """windows of a 3-channel machine: vibration, pressure, temperature-like drift"""
    t = np.arange(WIN)
    out = np.zeros((n, CHANNELS, WIN), dtype=np.float32)
    for i in range(n):
        f = rng.uniform(2.0, 4.0)
        ph = rng.uniform(0, 2 * np.pi)
        a = rng.uniform(0.8, 1.2)
        vib = a * np.sin(2 * np.pi * f * t / WIN + ph) + 0.4 * a * np.sin(4 * np.pi * f * t / WIN + 2 * ph)
        pres = 5 + 0.8 * a * np.cos(2 * np.pi * f * t / WIN + ph)
        temp = 40 + rng.normal(0, 2) + 3 * a * np.sin(np.pi * f * t / WIN + ph / 2)
        if anomalous:
            kind = rng.integers(4)
            if kind == 0:                         # all channels get stronger
                g = rng.uniform(1.25, 1.5)
                vib, pres, temp = vib * g, 5 + (pres - 5) * g, temp.mean() + (temp - temp.mean()) * g
            elif kind == 1:                       # offset of the pressure
                pres = pres + rng.choice([-1, 1]) * rng.uniform(0.5, 0.9)
            elif kind == 2:                       # phase slip between channels
                pres = 5 + 0.8 * a * np.cos(2 * np.pi * f * t / WIN + ph + rng.uniform(0.3, 0.7))
            else:                                 # short burst
                s = rng.integers(0, WIN - 12)
                vib[s:s + 12] += rng.uniform(0.5, 0.9) * np.sin(np.arange(12) * 1.9)
        out[i] = np.stack([vib, pres, temp])
    out += (rng.normal(0, 1, out.shape) * np.array([0.15, 0.1, 0.4])[None, :, None]).astype(np.float32)
    return out


class Windows(Dataset):
    def __init__(self, x, labels=None):
        self.x = torch.as_tensor(x, dtype=torch.float32)
        self.labels = torch.zeros(len(x)) if labels is None else torch.as_tensor(labels)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.labels[i]


class Standardizer:
    def fit(self, x):
        self.m = x.mean(axis=(0, 2), keepdims=True)
        self.s = x.std(axis=(0, 2), keepdims=True)
        return self

    def transform(self, x):
        return (x - self.m) / self.s


class ConvDAE(nn.Module):
    def __init__(self, latent=10):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(CHANNELS, 16, 7, stride=2, padding=3), nn.GELU(),
            nn.Conv1d(16, 24, 5, stride=2, padding=2), nn.GELU(),
            nn.Conv1d(24, 24, 5, stride=2, padding=2), nn.GELU(),
            nn.Flatten(),
            nn.Linear(24 * 8, latent),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent, 24 * 8), nn.GELU(),
            nn.Unflatten(1, (24, 8)),
            nn.ConvTranspose1d(24, 24, 4, stride=2, padding=1), nn.GELU(),
            nn.ConvTranspose1d(24, 16, 4, stride=2, padding=1), nn.GELU(),
            nn.ConvTranspose1d(16, CHANNELS, 4, stride=2, padding=1),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Trainer:
    def __init__(self, model, train_ds, val_ds, lr=4e-3, batch_size=64, noise=0.3, epochs=14):
        self.model = model
        self.noise = noise
        self.epochs = epochs
        self.train_loader = DataLoader(train_ds, batch_size=batch_size, shuffle=True)
        self.val_loader = DataLoader(val_ds, batch_size=256)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=epochs)

    def corrupt(self, x):
        noisy = x + self.noise * torch.randn_like(x)
        drop = (torch.rand(x.size(0), x.size(1), x.size(2) // 8) < 0.1).repeat_interleave(8, dim=2)
        return noisy.masked_fill(drop, 0.0)

    def train_epoch(self):
        self.model.train()
        losses = []
        for clean, _ in self.train_loader:
            noisy = self.corrupt(clean)
            rec = self.model(noisy)
            loss = F.mse_loss(rec, clean)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        self.scheduler.step()
        return float(np.mean(losses))

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total, n = 0.0, 0
        for x, _ in self.val_loader:
            rec = self.model(self.corrupt(x))
            total += F.mse_loss(rec, x, reduction="sum").item()
            n += x.numel()
        return total / n

    def fit(self):
        for ep in range(self.epochs):
            tr = self.train_epoch()
            va = self.validate()
            lr = self.optimizer.param_groups[0]["lr"]
            print(f"epoch {ep:2d} | train mse {tr:.4f} | val mse {va:.4f} | lr {lr:.5f}")

    @torch.no_grad()
    def anomaly_scores(self, loader):
        self.model.eval()
        scores, labels = [], []
        for x, y in loader:
            rec = self.model(x)
            err = F.mse_loss(rec, x, reduction="none")
            scores.append(err.mean(dim=(1, 2)))
            labels.append(y)
        return torch.cat(scores).numpy(), torch.cat(labels).numpy()


if __name__ == "__main__":
    rng = np.random.default_rng(5)
    torch.manual_seed(5)

    train_raw = simulate(2400, rng)
    val_raw = simulate(400, rng)
    test_raw = np.concatenate([simulate(400, rng), simulate(200, rng, anomalous=True)])
    test_lab = np.concatenate([np.zeros(400), np.ones(200)])

    scaler = Standardizer().fit(train_raw)
    train_ds = Windows(scaler.transform(train_raw))
    val_ds = Windows(scaler.transform(val_raw))
    test_ds = Windows(scaler.transform(test_raw), test_lab)

    trainer = Trainer(ConvDAE(), train_ds, val_ds)
    trainer.fit()

    val_scores, _ = trainer.anomaly_scores(DataLoader(val_ds, batch_size=50))
    scores, labels = trainer.anomaly_scores(DataLoader(test_ds, batch_size=50))
    thr = np.quantile(val_scores, 0.95)
    flagged = scores > thr
    print(f"test AUROC {roc_auc_score(labels, scores):.4f}  AP {average_precision_score(labels, scores):.4f}")
    print(f"threshold {thr:.4f}  detection rate {flagged[labels == 1].mean():.3f}  "
          f"false alarms {flagged[labels == 0].mean():.3f}")
