"""Transformer over tabular columns (categorical embeddings + projected numerics)."""
import argparse
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

CARDS = [12, 8, 30, 5, 20]


def make_table(n, rng):
    cat = np.stack([rng.integers(0, c, n) for c in CARDS], 1)
    age = rng.uniform(18, 80, n)
    income = np.exp(rng.normal(10.5, 0.6, n))
    rate = rng.gamma(2.0, 0.01, n)
    visits = rng.poisson(4, n).astype(float)
    score = rng.normal(600, 60, n)
    delay = rng.exponential(0.2, n)
    num = np.stack([age, income, rate, visits, score, delay], 1)
    eff = np.random.default_rng(99)
    tables = [eff.normal(0, 0.8, c) for c in CARDS]
    inter = eff.normal(0, 0.8, (CARDS[1], CARDS[3]))
    z = sum(t[cat[:, j]] for j, t in enumerate(tables)) + inter[cat[:, 1], cat[:, 3]]
    z = z + 1.5 * np.sin((age - 18) / 62 * 2 * np.pi) + 1.2 * (score - 600) / 60 - 60 * (rate - 0.02)
    z = z + 0.9 * (np.log(income) - 10.5) / 0.6 - 3.0 * (delay - 0.2)
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-1.3 * z))).astype(np.int64)
    names = np.array([[f"col{j}_{v:02d}" for j, v in enumerate(row)] for row in cat])
    return names, num, y


def build_vocab(cat):
    return [{v: i + 1 for i, v in enumerate(dict.fromkeys(cat[:, j]))} for j in range(cat.shape[1])]


def encode(cat, vocab):
    return np.array([[vocab[j].get(v, 0) for j, v in enumerate(row)] for row in cat])


class TabTransformer(nn.Module):
    def __init__(self, sizes, n_num, d=24, heads=4, layers=1, drop=0.1):
        super().__init__()
        self.embs = nn.ModuleList(nn.Embedding(s + 1, d) for s in sizes)
        self.num_w = nn.Parameter(torch.randn(n_num, d) * 0.3)
        self.num_b = nn.Parameter(torch.zeros(n_num, d))
        self.cls = nn.Parameter(torch.randn(1, 1, d) * 0.02)
        layer = nn.TransformerEncoderLayer(d, heads, 2 * d, drop, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2))

    def forward(self, cat, num):
        toks = [e(cat[:, j]) for j, e in enumerate(self.embs)]
        toks = torch.stack(toks, 1)
        nums = num.unsqueeze(-1) * self.num_w + self.num_b
        x = torch.cat([self.cls.expand(len(cat), -1, -1), toks, nums], 1)
        return self.head(self.enc(x)[:, 0])


def evaluate(model, cat, num, y):
    model.eval()
    with torch.no_grad():
        logits = model(cat, num)
        nll = F.cross_entropy(logits, y).item()
        p = logits.softmax(-1)[:, 1].numpy()
    return nll, roc_auc_score(y.numpy(), p)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--batch-size", type=int, default=128)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--weight-decay", type=float, default=0.1)
    ap.add_argument("--warmup", type=int, default=50)
    ap.add_argument("--seed", type=int, default=11)
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    cat_tr, num_tr, y_tr = make_table(3200, rng)
    cat_va, num_va, y_va = make_table(1500, rng)
    vocab = build_vocab(cat_tr)
    scaler = StandardScaler().fit(num_tr)
    c_tr = torch.tensor(encode(cat_tr, vocab))
    c_va = torch.tensor(encode(cat_va, vocab))
    x_tr = torch.tensor(scaler.transform(num_tr), dtype=torch.float32)
    x_va = torch.tensor(scaler.transform(num_va), dtype=torch.float32)
    y_tr, y_va = torch.tensor(y_tr), torch.tensor(y_va)

    loader = DataLoader(TensorDataset(c_tr, x_tr, y_tr), batch_size=args.batch_size, shuffle=True)
    model = TabTransformer([len(v) for v in vocab], x_tr.shape[1])
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    total = args.epochs * len(loader)

    def factor(step):
        if step < args.warmup:
            return (step + 1) / args.warmup
        return 0.5 * (1 + math.cos(math.pi * (step - args.warmup) / (total - args.warmup)))

    sched = torch.optim.lr_scheduler.LambdaLR(opt, factor)
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for c, x, y in loader:
            opt.zero_grad()
            loss = F.cross_entropy(model(c, x), y)
            loss.backward()
            opt.step()
            sched.step()
            losses.append(loss.item())
        nll, auc = evaluate(model, c_va, x_va, y_va)
        print(f"epoch {epoch + 1:2d}  train loss {np.mean(losses):.4f}  val loss {nll:.4f}  val AUC {auc:.4f}")
    print(f"final val loss {nll:.4f}  val AUC {auc:.4f}  base rate {y_va.float().mean():.3f}")


if __name__ == "__main__":
    main()
