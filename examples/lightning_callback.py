"""Lightning: a callback records the training and prints the diagnosis at its end.

python examples/lightning_callback.py
"""

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from holter.integrations.lightning import HolterCallback

lightning.seed_everything(0)
inputs = torch.randn(1280, 8)
data = TensorDataset(inputs, (inputs[:, 0] * inputs[:, 1] > 0).long())
train, valid = torch.utils.data.random_split(data, [1024, 256])


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))

    def training_step(self, batch, _):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, _):
        self.log("val_loss", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


trainer = lightning.Trainer(
    max_epochs=10,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    callbacks=[HolterCallback()],
)
trainer.fit(Classifier(), DataLoader(train, 32, shuffle=True), DataLoader(valid, 256))
