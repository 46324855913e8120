"""Train a classifier with a fastai Learner and its own Adam."""

import json
import os
from pathlib import Path

import fastai.callback.progress
import fastai.callback.schedule  # noqa: F401
import torch
from fastai.callback.core import Callback
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.learner import Learner
from fastai.losses import CrossEntropyLossFlat
from fastai.torch_core import set_seed
from torch import nn

set_seed(0)
x = torch.randn(640, 8)
y = (x[:, 0] + x[:, 1] > 0).long()
data = list(zip(x, y, strict=True))
history = {"loss": [], "val_loss": []}


class Losses(Callback):
    """Keep the loss of each batch; the recorder smooths them."""

    def after_loss(self):
        if self.training:
            history["loss"].append(self.loss.item())


loaders = DataLoaders(DataLoader(data[:512], bs=32, shuffle=True), DataLoader(data[512:], bs=64))
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
learner = Learner(loaders, model, loss_func=CrossEntropyLossFlat(), cbs=Losses())
with learner.no_bar(), learner.no_logging():
    learner.fit_one_cycle(3, 1e-2)
history["val_loss"] = [valid for _, valid in learner.recorder.values]
print(learner.recorder.values)

if "HISTORY" in os.environ:
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
