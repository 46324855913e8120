"""Transformers' Trainer on a classifier with padded batches, metrics and checkpoints."""

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Reviews(Dataset):
    def __init__(self, count, seed):
        random = np.random.default_rng(seed)
        self.labels = random.integers(2, size=count)
        self.texts = [
            random.integers(5, 40, size=random.integers(4, 12)).tolist() for _ in range(count)
        ]
        for text, label in zip(self.texts, self.labels):
            text[1] = 3 + int(label)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.texts[i], "labels": int(self.labels[i])}


def collate(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    ids = [row["input_ids"] + [0] * (longest - len(row["input_ids"])) for row in rows]
    mask = [[1] * len(r["input_ids"]) + [0] * (longest - len(r["input_ids"])) for r in rows]
    return {
        "input_ids": torch.tensor(ids),
        "attention_mask": torch.tensor(mask),
        "labels": torch.tensor([row["labels"] for row in rows]),
    }


def compute_metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


config = BertConfig(
    vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
)
model = BertForSequenceClassification(config)
arguments = TrainingArguments(
    "results", num_train_epochs=2, per_device_train_batch_size=16, learning_rate=5e-4,
    eval_strategy="epoch", save_strategy="epoch", logging_steps=10, report_to=[], use_cpu=True,
    disable_tqdm=True,
)  # fmt: skip
trainer = Trainer(
    model=model,
    args=arguments,
    train_dataset=Reviews(320, 0),
    eval_dataset=Reviews(64, 1),
    data_collator=collate,
    compute_metrics=compute_metrics,
)
trainer.train()
trainer.save_model("results/best")
