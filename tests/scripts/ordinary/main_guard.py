"""Multi-label tagging of tabular rows."""

import hashlib
import json
import logging
import os
import random
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger(__name__)


@dataclass
class Config:
    n_features: int = 20
    n_labels: int = 6
    n_train: int = 600
    n_val: int = 150
    hidden: int = 64
    batch_size: int = 50
    epochs: int = 8
    max_lr: float = 0.02
    seed: int = 7


class RowDataset(Dataset):
    def __init__(self, cfg: Config, n: int, teacher: torch.Tensor):
        self.rows = torch.randn(n, cfg.n_features)
        self.tags = (self.rows @ teacher > 0).float()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int):
        return {"features": self.rows[index], "tags": self.tags[index]}


class Tagger(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.inp = nn.Linear(cfg.n_features, cfg.hidden)
        self.norm = nn.LayerNorm(cfg.hidden)
        self.out = nn.Linear(cfg.hidden, cfg.n_labels)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.norm(self.inp(features))))


class Trainer:
    def __init__(self, cfg: Config, model: nn.Module, train_set: Dataset, val_set: Dataset):
        self.cfg = cfg
        self.model = model
        self.train_loader = DataLoader(train_set, cfg.batch_size, shuffle=True, drop_last=True)
        self.val_loader = DataLoader(val_set, 2 * cfg.batch_size)
        self.loss_fn = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.max_lr)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer,
            max_lr=cfg.max_lr,
            epochs=cfg.epochs,
            steps_per_epoch=len(self.train_loader),
        )
        self.history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}

    def train_step(self, batch) -> float:
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(batch["features"]), batch["tags"])
        loss.backward()
        self.record(loss)
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()

    def record(self, loss: torch.Tensor) -> None:
        norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in self.model.parameters()))
        self.history["loss"].append(loss.item())
        self.history["grad_norm"].append(norm.item())
        self.history["lr"].append(self.scheduler.get_last_lr()[0])

    def train_epoch(self) -> float:
        self.model.train()
        losses = [self.train_step(batch) for batch in self.train_loader]
        return sum(losses) / len(losses)

    @torch.inference_mode()
    def evaluate(self) -> float:
        self.model.eval()
        total, count = 0.0, 0
        for batch in self.val_loader:
            loss = self.loss_fn(self.model(batch["features"]), batch["tags"])
            total += loss.item() * len(batch["tags"])
            count += len(batch["tags"])
        return total / count

    def fit(self) -> None:
        for epoch in range(self.cfg.epochs):
            train_loss = self.train_epoch()
            val_loss = self.evaluate()
            self.history["val_loss"].append([len(self.history["loss"]), val_loss])
            log.info("epoch %d train %.4f val %.4f", epoch, train_loss, val_loss)


def main() -> None:
    cfg = Config()
    random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    teacher = torch.randn(cfg.n_features, cfg.n_labels)
    train_set = RowDataset(cfg, cfg.n_train, teacher)
    val_set = RowDataset(cfg, cfg.n_val, teacher)
    trainer = Trainer(cfg, Tagger(cfg), train_set, val_set)
    trainer.fit()

    if "HISTORY" in os.environ:
        weights = b"".join(v.numpy().tobytes() for v in trainer.model.state_dict().values())
        trainer.history["weights"] = hashlib.sha256(weights).hexdigest()
        Path(os.environ["HISTORY"]).write_text(json.dumps(trainer.history))


if __name__ == "__main__":
    main()
