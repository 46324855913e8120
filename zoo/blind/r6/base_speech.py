"""Keyword spotting on synthetic mel patches with Lightning: mixup, speakers kept apart, three splits."""
import logging
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)

WORDS = ["yes", "no", "up", "down", "left", "right", "stop", "go"]
MELS, MAXLEN = 24, 32


def make_clips(n_speakers=24, per_word=6, seed=0):
    rng = np.random.default_rng(seed)
    base = rng.normal(0, 1, (len(WORDS), 4, MELS))
    clips = []
    for spk in range(n_speakers):
        accent = rng.normal(0, 1.8, (len(WORDS), 4, MELS))
        tilt = rng.normal(0, 0.5, MELS)
        pace = rng.uniform(0.8, 1.25)
        for w in range(len(WORDS)):
            for _ in range(per_word):
                n = int(np.clip(rng.normal(20, 3) * pace, 10, MAXLEN))
                pos = np.linspace(0, 3, n)
                lo = np.floor(pos).astype(int).clip(0, 2)
                frac = (pos - lo)[:, None]
                tpl = base[w] + accent[w]
                mel = (1 - frac) * tpl[lo] + frac * tpl[lo + 1] + tilt + rng.normal(0, 1.8, (n, MELS))
                clips.append({"mel": mel * 6 - 40, "word": w, "speaker": spk})
    return clips


class ClipSet(Dataset):
    def __init__(self, clips, mean, std, train):
        self.clips, self.mean, self.std, self.train = clips, mean, std, train

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, i):
        c = self.clips[i]
        mel = torch.tensor((c["mel"] - self.mean) / self.std, dtype=torch.float32)
        out = torch.zeros(MAXLEN, MELS)
        start = int(torch.randint(0, MAXLEN - len(mel) + 1, (1,))) if self.train else (MAXLEN - len(mel)) // 2
        out[start:start + len(mel)] = mel
        return {"x": out.t(), "y": c["word"]}


class ClipData(L.LightningDataModule):
    def setup(self, stage=None):
        clips = make_clips()
        part = {"train": range(0, 14), "val": range(14, 19), "test": range(19, 24)}
        split = {k: [c for c in clips if c["speaker"] in r] for k, r in part.items()}
        frames = np.concatenate([c["mel"] for c in split["train"]])
        mean, std = frames.mean(0), frames.std(0)
        self.sets = {k: ClipSet(v, mean, std, k == "train") for k, v in split.items()}

    def train_dataloader(self):
        return DataLoader(self.sets["train"], batch_size=32, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.sets["val"], batch_size=120)

    def test_dataloader(self):
        return DataLoader(self.sets["test"], batch_size=120)


class KeywordNet(L.LightningModule):
    def __init__(self, lr=3e-3, mix=0.4, epochs=11):
        super().__init__()
        self.save_hyperparameters()
        self.features = nn.Sequential(
            nn.Conv1d(MELS, 48, 5, padding=2), nn.BatchNorm1d(48), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(48, 64, 5, padding=2), nn.BatchNorm1d(64), nn.ReLU(), nn.MaxPool1d(2))
        self.attn = nn.Conv1d(64, 1, 1)
        self.classifier = nn.Sequential(nn.Dropout(0.3), nn.Linear(64, len(WORDS)))
        self.history = []

    def forward(self, x):
        h = self.features(x)
        a = torch.softmax(self.attn(h), dim=-1)
        return self.classifier((a * h).sum(-1))

    def training_step(self, batch, _):
        x, y = batch["x"], batch["y"]
        lam = float(np.random.beta(self.hparams.mix, self.hparams.mix))
        perm = torch.randperm(len(x))
        logits = self(lam * x + (1 - lam) * x[perm])
        loss = lam * F.cross_entropy(logits, y) + (1 - lam) * F.cross_entropy(logits, y[perm])
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def _shared_eval(self, batch, name):
        logits = self(batch["x"])
        self.log(f"{name}_loss", F.cross_entropy(logits, batch["y"]), batch_size=len(logits))
        self.log(f"{name}_acc", (logits.argmax(1) == batch["y"]).float().mean(), batch_size=len(logits))

    def validation_step(self, batch, _):
        self._shared_eval(batch, "val")

    def test_step(self, batch, _):
        self._shared_eval(batch, "test")

    def on_train_epoch_end(self):
        m = {k: float(v) for k, v in self.trainer.callback_metrics.items()}
        print(f"epoch {self.current_epoch:2d} train {m['train_loss']:.4f} val {m['val_loss']:.4f} val acc {m['val_acc']:.3f}")

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-2)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.hparams.epochs)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "epoch"}}


if __name__ == "__main__":
    L.seed_everything(13, verbose=False)
    data, net = ClipData(), KeywordNet()
    trainer = L.Trainer(max_epochs=11, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(net, datamodule=data)
    res = trainer.test(net, datamodule=data, verbose=False)[0]
    print(f"test loss {res['test_loss']:.4f} test acc {res['test_acc']:.3f}")
