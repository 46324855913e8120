"""Sequence classification, written the way a transformers example is."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader


@dataclass
class TinyConfig:
    vocab_size: int = 30
    hidden_size: int = 32
    num_heads: int = 4
    num_layers: int = 2
    num_labels: int = 3
    max_length: int = 16
    dropout: float = 0.1
    gradient_checkpointing: bool = True


@dataclass
class SequenceClassifierOutput:
    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None


class TinyLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(
            config.hidden_size, config.num_heads, batch_first=True
        )
        self.norm1 = nn.LayerNorm(config.hidden_size)
        self.norm2 = nn.LayerNorm(config.hidden_size)
        self.ff = nn.Sequential(
            nn.Linear(config.hidden_size, 64),
            nn.GELU(),
            nn.Linear(64, config.hidden_size),
            nn.Dropout(config.dropout),
        )

    def forward(self, hidden, padding):
        attended, _ = self.attention(hidden, hidden, hidden, key_padding_mask=padding)
        hidden = self.norm1(hidden + attended)
        return self.norm2(hidden + self.ff(hidden))


class TinyForSequenceClassification(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=0)
        self.positions = nn.Embedding(config.max_length, config.hidden_size)
        self.layers = nn.ModuleList([TinyLayer(config) for _ in range(config.num_layers)])
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)

    def forward(self, input_ids, attention_mask=None, labels=None):
        hidden = self.tokens(input_ids) + self.positions.weight[: input_ids.size(1)]
        padding = attention_mask == 0 if attention_mask is not None else None
        for layer in self.layers:
            if self.config.gradient_checkpointing and self.training:
                hidden = checkpoint(layer, hidden, padding, use_reentrant=False)
            else:
                hidden = layer(hidden, padding)
        logits = self.classifier(hidden[:, 0])

        loss = None
        if labels is not None:
            loss_fct = nn.CrossEntropyLoss()
            loss = loss_fct(logits.view(-1, self.config.num_labels), labels.view(-1))
        return SequenceClassifierOutput(loss=loss, logits=logits)


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps):
    def lr_lambda(current_step):
        if current_step < num_warmup_steps:
            return current_step / max(1, num_warmup_steps)
        left = num_training_steps - current_step
        return max(0.0, left / max(1, num_training_steps - num_warmup_steps))

    return LambdaLR(optimizer, lr_lambda)


def make_examples(n):
    """Sentences of random tokens; one of the tokens 1, 2 and 3 in them is the label."""
    examples = []
    for _ in range(n):
        length = int(torch.randint(5, 16, ()))
        label = int(torch.randint(3, ()))
        ids = torch.randint(5, 30, (length,))
        ids[0] = 4
        ids[int(torch.randint(1, length, ()))] = label + 1
        if torch.rand(()) < 0.05:
            label = (label + 1) % 3  # annotators err
        examples.append({"input_ids": ids.tolist(), "label": label})
    return examples


def collate_fn(examples):
    longest = max(len(e["input_ids"]) for e in examples)
    ids = [e["input_ids"] + [0] * (longest - len(e["input_ids"])) for e in examples]
    input_ids = torch.tensor(ids)
    return {
        "input_ids": input_ids,
        "attention_mask": (input_ids != 0).long(),
        "labels": torch.tensor([e["label"] for e in examples]),
    }


def main():
    torch.manual_seed(42)
    num_epochs, max_grad_norm = 4, 1.0
    train_dataloader = DataLoader(
        make_examples(400), shuffle=True, collate_fn=collate_fn, batch_size=16
    )
    eval_dataset = make_examples(100)
    eval_dataloader = DataLoader(eval_dataset, collate_fn=collate_fn, batch_size=16)

    model = TinyForSequenceClassification(TinyConfig())
    optimizer = AdamW(model.parameters(), lr=4e-3)
    total_steps = num_epochs * len(train_dataloader)
    lr_scheduler = get_linear_schedule_with_warmup(optimizer, 10, total_steps)
    history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}

    for epoch in range(num_epochs):
        model.train()
        for batch in train_dataloader:
            outputs = model(**batch)
            outputs.loss.backward()
            grads = [p.grad for p in model.parameters() if p.grad is not None]
            history["loss"].append(outputs.loss.item())
            history["grad_norm"].append(torch.sqrt(sum(g.pow(2).sum() for g in grads)).item())
            history["lr"].append(lr_scheduler.get_last_lr()[0])
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()

        model.eval()
        eval_loss = correct = 0
        for batch in eval_dataloader:
            with torch.no_grad():
                outputs = model(**batch)
            eval_loss += outputs.loss.item() * len(batch["labels"])
            correct += (outputs.logits.argmax(dim=-1) == batch["labels"]).sum().item()
        eval_loss /= len(eval_dataset)
        history["val_loss"].append([len(history["loss"]), eval_loss])
        print({"epoch": epoch, "eval_loss": eval_loss, "accuracy": correct / len(eval_dataset)})

    if "HISTORY" in os.environ:
        weights = b"".join(v.numpy().tobytes() for v in model.state_dict().values())
        history["weights"] = hashlib.sha256(weights).hexdigest()
        Path(os.environ["HISTORY"]).write_text(json.dumps(history))


if __name__ == "__main__":
    main()
