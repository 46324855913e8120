"""Fine-tune a small DistilBERT with a loop of one's own: the model computes its loss itself."""

import argparse

import torch
from torch.utils.data import DataLoader
from transformers import DistilBertConfig, DistilBertForSequenceClassification, get_scheduler

parser = argparse.ArgumentParser()
parser.add_argument("--fault", default="")
args = parser.parse_args()
torch.manual_seed(0)
VOCAB = 50


def sentences(count, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (count,), generator=generator)
    words = torch.randint(20, VOCAB, (count, 10), generator=generator)
    marked = torch.rand(count, 10, generator=generator) < 0.4
    tone = torch.randint(0, 5, (count, 10), generator=generator) + 2 + 6 * labels[:, None]
    words[marked] = tone[marked]
    lengths = torch.randint(5, 11, (count,), generator=generator)
    return [(w[:n], y) for w, n, y in zip(words, lengths, labels, strict=True)]


def collate(batch):
    longest = max(len(words) for words, _ in batch)
    input_ids = torch.zeros(len(batch), longest, dtype=torch.long)
    attention_mask = torch.zeros(len(batch), longest, dtype=torch.long)
    for row, (words, _) in enumerate(batch):
        input_ids[row, : len(words)] = words
        attention_mask[row, : len(words)] = 1
    labels = torch.stack([label for _, label in batch])
    return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}


train_dataloader = DataLoader(sentences(960, 0), batch_size=16, shuffle=True, collate_fn=collate)
eval_dataloader = DataLoader(sentences(240, 1), batch_size=40, collate_fn=collate)

config = DistilBertConfig(
    vocab_size=VOCAB, dim=32, n_layers=2, n_heads=2, hidden_dim=64, num_labels=3
)
model = DistilBertForSequenceClassification(config)
if args.fault == "frozen-encoder":  # the encoder is random, so there is nothing to keep
    for parameter in model.distilbert.parameters():
        parameter.requires_grad = False
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
num_epochs = 3
num_training_steps = num_epochs * len(train_dataloader)
lr_scheduler = get_scheduler(
    name="linear",
    optimizer=optimizer,
    num_warmup_steps=10,
    num_training_steps=num_training_steps,
)

completed = 0
for epoch in range(num_epochs):
    model.train()
    for batch in train_dataloader:
        outputs = model(**batch)
        loss = outputs.loss
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        if args.fault != "no-zero-grad":
            optimizer.zero_grad()
        completed += 1
        if completed % 10 == 0:
            print(f"step {completed}/{num_training_steps} loss {loss.item()}")
    model.eval()
    losses, correct = [], 0
    for batch in eval_dataloader:
        with torch.no_grad():
            outputs = model(**batch)
        losses.append(outputs.loss)
        correct += (outputs.logits.argmax(dim=-1) == batch["labels"]).sum().item()
    print(f"epoch {epoch}: eval loss {torch.stack(losses).mean().item()} acc {correct / 240:.3f}")
