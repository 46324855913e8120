"""Accelerate: prepared loaders, a scheduler, evaluation at the end of each epoch."""

import torch
from accelerate import Accelerator
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

MAX_GPU_BATCH_SIZE = 16


def get_dataloaders(batch_size):
    generator = torch.Generator().manual_seed(0)

    def rows(count):
        made = []
        for _ in range(count):
            label = int(torch.randint(2, (), generator=generator))
            length = int(torch.randint(4, 12, (), generator=generator))
            ids = torch.randint(5, 40, (length,), generator=generator)
            ids[1] = 3 + label
            made.append((ids, label))
        return made

    def collate_fn(examples):
        ids = torch.nn.utils.rnn.pad_sequence([ids for ids, _ in examples], batch_first=True)
        return {
            "input_ids": ids,
            "attention_mask": (ids != 0).long(),
            "labels": torch.tensor([label for _, label in examples]),
        }

    train_dataloader = DataLoader(
        rows(320), shuffle=True, collate_fn=collate_fn, batch_size=batch_size, drop_last=True
    )
    eval_dataloader = DataLoader(rows(64), shuffle=False, collate_fn=collate_fn, batch_size=32)
    return train_dataloader, eval_dataloader


def training_function(config):
    accelerator = Accelerator(cpu=True)
    num_epochs, lr = int(config["num_epochs"]), config["lr"]
    torch.manual_seed(config["seed"])
    gradient_accumulation_steps = 1
    train_dataloader, eval_dataloader = get_dataloaders(MAX_GPU_BATCH_SIZE)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=40,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
        )
    )
    model = model.to(accelerator.device)
    optimizer = AdamW(params=model.parameters(), lr=lr)
    lr_scheduler = get_linear_schedule_with_warmup(
        optimizer=optimizer,
        num_warmup_steps=5,
        num_training_steps=len(train_dataloader) * num_epochs,
    )
    model, optimizer, train_dataloader, eval_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, lr_scheduler
    )
    for epoch in range(num_epochs):
        model.train()
        for step, batch in enumerate(train_dataloader):
            batch.to(accelerator.device) if hasattr(batch, "to") else None
            outputs = model(**batch)
            loss = outputs.loss
            loss = loss / gradient_accumulation_steps
            accelerator.backward(loss)
            if step % gradient_accumulation_steps == 0:
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
        model.eval()
        correct = total = 0
        for step, batch in enumerate(eval_dataloader):
            with torch.no_grad():
                outputs = model(**batch)
            predictions = outputs.logits.argmax(dim=-1)
            predictions, references = accelerator.gather_for_metrics((predictions, batch["labels"]))
            correct, total = correct + (predictions == references).sum(), total + len(references)
        accelerator.print(f"epoch {epoch}:", float(correct) / total)
        accelerator.save_state(f"epoch_{epoch}")


if __name__ == "__main__":
    training_function({"lr": 1e-3, "num_epochs": 3, "seed": 42})
