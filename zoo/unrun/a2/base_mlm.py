"""Masked language model pretraining of a small BERT-like encoder, with accumulation and resume."""
import math
import os
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PAD, CLS, SEP, MASK, UNK = range(5)
N_SPECIAL = 5


class LineDataset(Dataset):
    def __init__(self, lines, vocab, max_len):
        self.rows = []
        for line in lines:
            ids = [vocab.get(w, UNK) for w in line.split()][: max_len - 2]
            if ids:
                self.rows.append([CLS] + ids + [SEP])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.tensor(self.rows[i])


class MaskingCollator:
    def __init__(self, vocab_size, prob=0.15, seed=None):
        self.vocab_size, self.prob, self.seed = vocab_size, prob, seed

    def __call__(self, rows):
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
        g = None if self.seed is None else torch.Generator().manual_seed(self.seed)
        labels = ids.clone()
        chosen = torch.rand(ids.shape, generator=g) < self.prob
        chosen &= (ids >= N_SPECIAL) | (ids == UNK)
        labels[~chosen] = -100
        how = torch.rand(ids.shape, generator=g)
        ids[chosen & (how < 0.8)] = MASK
        random_words = torch.randint(N_SPECIAL, self.vocab_size, ids.shape, generator=g)
        swap = chosen & (how >= 0.8) & (how < 0.9)
        ids[swap] = random_words[swap]
        return ids, labels


class MaskedLM(nn.Module):
    def __init__(self, vocab_size, max_len, dim=256, heads=4, layers=4, dropout=0.1):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, dim, padding_idx=PAD)
        self.pos = nn.Embedding(max_len, dim)
        self.norm = nn.LayerNorm(dim)
        self.drop = nn.Dropout(dropout)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.transform = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.LayerNorm(dim))
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        nn.init.normal_(self.tok.weight, std=0.02)
        nn.init.normal_(self.pos.weight, std=0.02)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.size(1), device=ids.device))
        x = self.encoder(self.drop(self.norm(x)), src_key_padding_mask=ids == PAD)
        return self.transform(x) @ self.tok.weight.t() + self.bias


class Trainer:
    def __init__(self, model, train_set, val_set, vocab_size, device, epochs=10, batch_size=32, accum=4, lr=5e-4):
        self.model, self.device, self.epochs, self.accum = model.to(device), device, epochs, accum
        self.train_loader = DataLoader(train_set, batch_size, shuffle=True, drop_last=True,
                                       collate_fn=MaskingCollator(vocab_size))
        self.val_loader = DataLoader(val_set, batch_size, collate_fn=MaskingCollator(vocab_size, seed=0))
        self.criterion = nn.CrossEntropyLoss(ignore_index=-100)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01, betas=(0.9, 0.98))
        total = epochs * (len(self.train_loader) // accum)
        warmup = max(1, total // 20)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda s: min((s + 1) / warmup, max(0.0, (total - s) / max(1, total - warmup))))
        self.epoch, self.best = 0, float("inf")

    def train_epoch(self):
        self.model.train()
        self.optimizer.zero_grad()
        running, usable = 0.0, len(self.train_loader) // self.accum * self.accum
        for i, (ids, labels) in enumerate(self.train_loader):
            if i == usable:
                break
            loss = self.criterion(self.model(ids.to(self.device)).flatten(0, 1), labels.to(self.device).flatten())
            (loss / self.accum).backward()
            running += loss.item()
            if (i + 1) % self.accum == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.scheduler.step()
                self.optimizer.zero_grad()
        return running / usable

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        nll, hits, n = 0.0, 0, 0
        for ids, labels in self.val_loader:
            labels = labels.to(self.device)
            chosen = labels != -100
            logits = self.model(ids.to(self.device))[chosen]
            nll += nn.functional.cross_entropy(logits, labels[chosen], reduction="sum").item()
            hits += (logits.argmax(-1) == labels[chosen]).sum().item()
            n += chosen.sum().item()
        return nll / n, hits / n

    def state(self):
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(), "epoch": self.epoch, "best": self.best}

    def resume(self, path):
        state = torch.load(path, map_location=self.device)
        for name in ("model", "optimizer", "scheduler"):
            getattr(self, name).load_state_dict(state[name])
        self.epoch, self.best = state["epoch"], state["best"]

    def fit(self):
        while self.epoch < self.epochs:
            train_loss = self.train_epoch()
            val_loss, acc = self.evaluate()
            self.epoch += 1
            print(f"{self.epoch}: train {train_loss:.3f} val {val_loss:.3f} ppl {math.exp(val_loss):.1f} acc {acc:.3f}")
            if val_loss < self.best:
                self.best = val_loss
                torch.save(self.model.state_dict(), "mlm_best.pt")
            torch.save(self.state(), "mlm_last.pt")


if __name__ == "__main__":
    random.seed(1)
    torch.manual_seed(1)
    lines = [l.strip().lower() for l in open("corpus.txt", encoding="utf-8") if l.strip()]
    random.shuffle(lines)
    n_val = len(lines) // 20
    words = sorted({w for l in lines[n_val:] for w in l.split()})
    vocab = {w: i + N_SPECIAL for i, w in enumerate(words)}
    size = len(words) + N_SPECIAL
    trainer = Trainer(MaskedLM(size, 64), LineDataset(lines[n_val:], vocab, 64), LineDataset(lines[:n_val], vocab, 64),
                      size, "cuda" if torch.cuda.is_available() else "cpu")
    if os.path.exists("mlm_last.pt"):
        trainer.resume("mlm_last.pt")
    trainer.fit()
