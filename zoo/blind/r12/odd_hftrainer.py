"""transformers Trainer with a custom tiny model on motif classification."""
import os
os.environ["WANDB_DISABLED"] = "true"
import tempfile
import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(12)
rng = np.random.default_rng(12)


def make(n):
    ids = rng.integers(10, 40, (n, 16))
    y = rng.integers(0, 3, n)
    for i in range(n):
        p = rng.integers(1, 14)
        ids[i, p:p + 2] = [[3, 4], [4, 5], [5, 3]][y[i]]
    ids[:, 0] = 1
    return [{"input_ids": torch.tensor(a), "attention_mask": torch.ones(16, dtype=torch.long), "labels": int(b)} for a, b in zip(ids, y)]


train, val = make(1600), make(300)
cfg = BertConfig(vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                 max_position_embeddings=20, num_labels=3, initializer_range=0.15, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
model = BertForSequenceClassification(cfg)
args = TrainingArguments(output_dir=tempfile.mkdtemp(), num_train_epochs=5, per_device_train_batch_size=32, per_device_eval_batch_size=100,
                         learning_rate=2e-3, lr_scheduler_type="cosine", warmup_steps=25, logging_steps=50, eval_strategy="epoch",
                         save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True)
tr = Trainer(model=model, args=args, train_dataset=train, eval_dataset=val,
             compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())})
tr.train()
print(tr.evaluate())
