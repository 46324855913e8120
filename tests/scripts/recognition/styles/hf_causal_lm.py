"""Transformers' Trainer on a language model, with accumulation over micro batches."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
text = torch.cat([(torch.arange(24) * (1 + i % 2)) % 24 for i in range(160)])
blocks = text.view(-1, 8)
rows = [{"input_ids": block, "labels": block.clone()} for block in blocks]
config = GPT2Config(vocab_size=24, n_positions=8, n_embd=32, n_layer=2, n_head=2)
model = GPT2LMHeadModel(config)
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        "gpt2-out", max_steps=40, per_device_train_batch_size=8, gradient_accumulation_steps=2,
        learning_rate=1e-3, logging_steps=5, save_strategy="no", report_to=[], use_cpu=True,
        eval_strategy="steps", eval_steps=20, disable_tqdm=True,
    ),
    train_dataset=rows[:400],
    eval_dataset=rows[400:],
)  # fmt: skip
trainer.train()
