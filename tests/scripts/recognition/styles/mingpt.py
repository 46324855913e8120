"""A trainer class with callbacks and an endless iterator over a loader."""

import time
from collections import defaultdict

import torch
import torch.nn as nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler


class SortDataset(Dataset):
    def __init__(self, split, length=6, num_digits=3):
        self.split, self.length, self.num_digits = split, length, num_digits

    def __len__(self):
        return 2000

    def __getitem__(self, idx):
        generator = torch.Generator().manual_seed(idx + (0 if self.split == "train" else 10**6))
        inp = torch.randint(self.num_digits, (self.length,), generator=generator)
        cat = torch.cat((inp, torch.sort(inp)[0]))
        x, y = cat[:-1].clone(), cat[1:].clone()
        y[: self.length - 1] = -1
        return x, y


class GPT(nn.Module):
    def __init__(self, vocab, block, n=32):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n), nn.Embedding(block, n)
        self.h = nn.ModuleList(
            [nn.TransformerEncoderLayer(n, 2, 64, 0.0, batch_first=True) for _ in range(2)]
        )
        self.head = nn.Linear(n, vocab)

    def forward(self, idx, targets=None):
        t = idx.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        x = self.wte(idx) + self.wpe(torch.arange(t))
        for block in self.h:
            x = block(x, mask)
        logits = self.head(x)
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, 3), targets.view(-1), ignore_index=-1)
        return logits, loss

    def configure_optimizers(self, config):
        return torch.optim.AdamW(self.parameters(), lr=config["learning_rate"], betas=(0.9, 0.95))


class Trainer:
    def __init__(self, config, model, train_dataset):
        self.config, self.model, self.train_dataset = config, model, train_dataset
        self.optimizer = None
        self.callbacks = defaultdict(list)
        self.device = "cpu"
        self.model = self.model.to(self.device)
        self.iter_num = 0
        self.iter_time = self.iter_dt = 0.0

    def add_callback(self, onevent, callback):
        self.callbacks[onevent].append(callback)

    def trigger_callbacks(self, onevent):
        for callback in self.callbacks.get(onevent, []):
            callback(self)

    def run(self):
        model, config = self.model, self.config
        self.optimizer = model.configure_optimizers(config)
        train_loader = DataLoader(
            self.train_dataset,
            sampler=RandomSampler(self.train_dataset, replacement=True, num_samples=int(1e5)),
            shuffle=False,
            batch_size=16,
        )
        model.train()
        self.iter_num = 0
        self.iter_time = time.time()
        data_iter = iter(train_loader)
        while True:
            try:
                batch = next(data_iter)
            except StopIteration:
                data_iter = iter(train_loader)
                batch = next(data_iter)
            batch = [t.to(self.device) for t in batch]
            x, y = batch
            logits, self.loss = model(x, y)
            model.zero_grad(set_to_none=True)
            self.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config["grad_norm_clip"])
            self.optimizer.step()
            self.trigger_callbacks("on_batch_end")
            self.iter_num += 1
            tnow = time.time()
            self.iter_dt = tnow - self.iter_time
            self.iter_time = tnow
            if self.iter_num >= config["max_iters"]:
                break


def batch_end_callback(trainer):
    if trainer.iter_num % 20 == 0:
        print(
            f"iter_dt {trainer.iter_dt * 1000:.2f}ms; iter {trainer.iter_num}: {trainer.loss:.5f}"
        )


torch.manual_seed(3407)
train_dataset, test_dataset = SortDataset("train"), SortDataset("test")
trainer = Trainer(
    {"learning_rate": 5e-4, "grad_norm_clip": 1.0, "max_iters": 80},
    GPT(3, 11),
    train_dataset,
)
trainer.add_callback("on_batch_end", batch_end_callback)
trainer.run()
