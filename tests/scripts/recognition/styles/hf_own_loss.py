"""A Trainer whose loss is the user's own, with class weights."""

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, features, labels=None):
        return {"logits": self.body(features)}


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        logits = outputs["logits"]
        loss_fct = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]))
        loss = loss_fct(logits.view(-1, 3), labels.view(-1))
        return (loss, outputs) if return_outputs else loss


def rows(count):
    features = torch.randn(count, 10)
    labels = features[:, :3].argmax(1)
    return [{"features": f, "labels": y} for f, y in zip(features, labels)]


trainer = WeightedTrainer(
    model=Model(),
    args=TrainingArguments(
        "weighted", num_train_epochs=3, per_device_train_batch_size=16, learning_rate=1e-2,
        report_to=[], use_cpu=True, disable_tqdm=True, remove_unused_columns=False,
        save_strategy="no",
    ),
    train_dataset=rows(256),
    eval_dataset=rows(64),
)  # fmt: skip
trainer.train()
