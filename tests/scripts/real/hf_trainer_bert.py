"""Fine-tune a small BERT for sequence classification with transformers.Trainer."""

import argparse

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

parser = argparse.ArgumentParser()
parser.add_argument("--fault", default="")
cli = parser.parse_args()
set_seed(42)
VOCAB = 60


class Reviews(Dataset):
    """Sentences with good, bad and neutral words; padded by the collator to one length."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, 2, (count,), generator=generator)
        lengths = torch.randint(6, 13, (count,), generator=generator)
        words = torch.randint(20, VOCAB, (count, 12), generator=generator)
        marked = torch.rand(count, 12, generator=generator) < 0.3
        tone = torch.randint(0, 8, (count, 12), generator=generator) + 4 + 8 * self.labels[:, None]
        words[marked] = tone[marked]
        words[:, 0] = 2
        self.mask = torch.arange(12)[None] < lengths[:, None]
        self.words = words.masked_fill(~self.mask, 0)
        if cli.fault == "random-labels":
            self.labels = torch.randint(0, 2, (count,), generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {
            "input_ids": self.words[index],
            "attention_mask": self.mask[index].long(),
            "labels": self.labels[index],
        }


class PrintLosses(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        for key in ("loss", "eval_loss"):
            if logs and key in logs:
                print(f"{state.global_step} {key} = {logs[key]}")


def compute_metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


config = BertConfig(
    vocab_size=VOCAB,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=16,
    num_labels=2,
)
model = BertForSequenceClassification(config)
arguments = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=16,
    per_device_eval_batch_size=32,
    num_train_epochs=3,
    learning_rate=2e-3,
    logging_steps=1,
    eval_strategy="epoch",
    save_strategy="no",
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
)
trainer = Trainer(
    model=model,
    args=arguments,
    train_dataset=Reviews(960, 0),
    eval_dataset=Reviews(256, 1),
    compute_metrics=compute_metrics,
    callbacks=[PrintLosses()],
)
trainer.remove_callback(PrinterCallback)  # it prints times, which differ between runs
trainer.train()
