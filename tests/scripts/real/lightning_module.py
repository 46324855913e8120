"""A LightningModule with a Trainer, validation after each epoch and a test at the end."""

import argparse
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
parser = argparse.ArgumentParser()
parser.add_argument("--fault", default="")
args = parser.parse_args()
L.seed_everything(7, verbose=False)


def split(count, seed):
    centers = torch.randn(6, 24, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 6, (count,), generator=generator)
    return TensorDataset(centers[labels] + torch.randn(count, 24, generator=generator), labels)


class LitClassifier(L.LightningModule):
    def __init__(self, hidden_dim=48, learning_rate=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.l1 = nn.Linear(24, hidden_dim)
        self.norm = nn.BatchNorm1d(hidden_dim)
        self.l2 = nn.Linear(hidden_dim, 6)
        self.validation_losses = []

    def forward(self, x):
        return self.l2(F.relu(self.norm(self.l1(x))))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        if batch_idx % 10 == 0:
            print(f"epoch {self.current_epoch} batch {batch_idx} train_loss {loss.item()}")
        if args.fault == "detached-loss":  # rebuilt from a number: no gradient reaches the layers
            return F.cross_entropy(self.l2(F.relu(self.norm(self.l1(x))).detach()), y)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.validation_losses.append(loss.item())
        self.log("val_loss", loss)

    def on_validation_epoch_end(self):
        losses, self.validation_losses = self.validation_losses, []
        print(f"val_loss {sum(losses) / len(losses)}")

    def test_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("test_loss", loss)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.learning_rate)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.7)
        return [optimizer], [scheduler]


if __name__ == "__main__":
    trainer = L.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    model = LitClassifier()
    trainer.fit(
        model,
        DataLoader(split(1600, 1), batch_size=32, shuffle=True),
        DataLoader(split(320, 2), batch_size=64),
    )
    results = trainer.test(model, DataLoader(split(320, 3), batch_size=64), verbose=False)
    print(f"test_loss {results[0]['test_loss']}")
