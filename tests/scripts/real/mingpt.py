"""Sort digits with a small transformer and a Trainer class with callbacks."""

import os
from collections import defaultdict

import torch
import torch.nn as nn
from torch.nn import functional as F
from torch.utils.data import Dataset
from torch.utils.data.dataloader import DataLoader

FAULT = os.environ.get("FAULT", "")
LENGTH, DIGITS = 5, 3


class SortDataset(Dataset):
    """Problem: a sequence of digits; answer: the digits sorted."""

    def __init__(self, split):
        self.split = split

    def __len__(self):
        return 10000

    def __getitem__(self, idx):
        while True:
            inp = torch.randint(DIGITS, size=(LENGTH,), dtype=torch.long)
            if int((inp * 3 ** torch.arange(LENGTH)).sum()) % 4 == 0:
                inp_split = "test"
            else:
                inp_split = "train"
            if inp_split == self.split:
                break
        cat = torch.cat((inp, torch.sort(inp)[0]), dim=0)
        x, y = cat[:-1].clone(), cat[1:].clone()
        y[: LENGTH - 1] = -1  # only predict at the output locations
        return x, y


class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = nn.MultiheadAttention(n_embd, n_head, batch_first=True)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU())
        self.proj = nn.Linear(4 * n_embd, n_embd)

    def forward(self, x):
        mask = torch.triu(torch.ones(x.size(1), x.size(1), dtype=torch.bool), diagonal=1)
        if FAULT == "mask-off-by-one":
            mask = torch.triu(torch.ones_like(mask), diagonal=2)
        h = self.ln_1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.proj(self.mlp(self.ln_2(x)))


class GPT(nn.Module):
    def __init__(self, n_embd=32, n_head=4):
        super().__init__()
        self.wte = nn.Embedding(DIGITS, n_embd)
        self.wpe = nn.Embedding(2 * LENGTH - 1, n_embd)
        self.blocks = nn.ModuleList([Block(n_embd, n_head) for _ in range(2)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, DIGITS, bias=False)

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.blocks:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(
                logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1
            )
        return logits, loss


class Trainer:
    def __init__(self, model, train_dataset, max_iters, batch_size):
        self.model, self.train_dataset = model, train_dataset
        self.max_iters, self.batch_size = max_iters, batch_size
        self.callbacks = defaultdict(list)
        self.iter_num = 0
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = self.model.to(self.device)

    def set_callback(self, onevent, callback):
        self.callbacks[onevent] = [callback]

    def trigger_callbacks(self, onevent):
        for callback in self.callbacks.get(onevent, []):
            callback(self)

    def run(self):
        model = self.model
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=3e-3 if FAULT != "rate-too-high" else 1.0, betas=(0.9, 0.95)
        )
        train_loader = DataLoader(
            self.train_dataset,
            sampler=torch.utils.data.RandomSampler(
                self.train_dataset, replacement=True, num_samples=int(1e10)
            ),
            shuffle=False,
            batch_size=self.batch_size,
            num_workers=0,
        )
        model.train()
        self.iter_num = 0
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
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            self.optimizer.step()
            self.trigger_callbacks("on_batch_end")
            self.iter_num += 1
            if self.max_iters is not None and self.iter_num >= self.max_iters:
                break


if __name__ == "__main__":
    torch.manual_seed(3407)
    trainer = Trainer(GPT(), SortDataset("train"), max_iters=250, batch_size=32)

    def batch_end_callback(trainer):
        if trainer.iter_num % 10 == 0:
            print(f"iter {trainer.iter_num}: train loss {trainer.loss.item()}")

    trainer.set_callback("on_batch_end", batch_end_callback)
    trainer.run()
