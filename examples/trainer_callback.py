"""Transformers: the Trainer logs losses of 0.52 and 0, but every loss from step 53 on is NaN.

python examples/trainer_callback.py
"""

import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

from holter.integrations.transformers import HolterCallback

set_seed(0)
inputs = torch.rand(2048, 8)
labels = (inputs[:, 0] > inputs[:, 1]).long()
inputs[700, 3] = float("nan")  # one bad row


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x, labels):
        logits = self.net(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=3,
        per_device_train_batch_size=32,
        learning_rate=3e-3,
        logging_steps=32,  # means over 32 steps; logging_nan_inf_filter replaces NaN in them
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    rows = [{"x": x, "labels": y} for x, y in zip(inputs, labels, strict=True)]
    Trainer(Classifier(), arguments, train_dataset=rows, callbacks=[HolterCallback()]).train()
