#!/usr/bin/env python3
"""BPR matrix factorisation on MovieLens-1M with leave-last-out evaluation."""
import argparse

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F


def load_interactions(path, min_rating):
    df = pd.read_csv(path, sep="::", engine="python", names=["user", "item", "rating", "time"])
    df = df[df["rating"] >= min_rating]
    df = df[df.groupby("user")["item"].transform("size") >= 5]
    df["user"] = df["user"].astype("category").cat.codes
    df["item"] = df["item"].astype("category").cat.codes
    return df.sort_values(["user", "time"], kind="stable").reset_index(drop=True)


def leave_last_out(df):
    back = df.groupby("user").cumcount(ascending=False)
    return df[back >= 2], df[back == 1], df[back == 0]


class BPR(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.bias = nn.Embedding(n_items, 1)
        nn.init.normal_(self.user.weight, std=0.05)
        nn.init.normal_(self.item.weight, std=0.05)
        nn.init.zeros_(self.bias.weight)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(dim=-1) + self.bias(i).squeeze(-1)

    def all_scores(self, u):
        return self.user(u) @ self.item.weight.t() + self.bias.weight.squeeze(1)


def sample_negatives(users, n_items, seen, rng):
    neg = rng.integers(0, n_items, size=len(users))
    bad = seen[users, neg]
    while bad.any():
        neg[bad] = rng.integers(0, n_items, size=bad.sum())
        bad = seen[users, neg]
    return neg


def seen_matrix(parts, n_users, n_items):
    seen = np.zeros((n_users, n_items), dtype=bool)
    for part in parts:
        seen[part["user"].to_numpy(), part["item"].to_numpy()] = True
    return seen


@torch.no_grad()
def evaluate(model, held_out, seen, device, k=10, batch=512):
    model.eval()
    users = held_out["user"].to_numpy()
    items = held_out["item"].to_numpy()
    hits, ndcg = 0.0, 0.0
    for s in range(0, len(users), batch):
        u = torch.as_tensor(users[s:s + batch], dtype=torch.long, device=device)
        target = torch.as_tensor(items[s:s + batch], dtype=torch.long, device=device)
        scores = model.all_scores(u)
        mask = torch.from_numpy(seen[users[s:s + batch]]).to(device)
        scores = scores.masked_fill(mask, float("-inf"))
        own = scores.gather(1, target[:, None])
        rank = (scores > own).sum(dim=1)
        inside = rank < k
        hits += inside.sum().item()
        ndcg += (inside.float() / torch.log2(rank.float() + 2)).sum().item()
    return hits / len(users), ndcg / len(users)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ratings", default="ml-1m/ratings.dat")
    ap.add_argument("--min-rating", type=int, default=4)
    ap.add_argument("--dim", type=int, default=64)
    ap.add_argument("--batch-size", type=int, default=4096)
    ap.add_argument("--epochs", type=int, default=60)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--reg", type=float, default=1e-4)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--out", default="bpr.pt")
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    df = load_interactions(args.ratings, args.min_rating)
    n_users, n_items = int(df["user"].max()) + 1, int(df["item"].max()) + 1
    train, val, test = leave_last_out(df)
    seen_train = seen_matrix([train], n_users, n_items)
    seen_train_val = seen_matrix([train, val], n_users, n_items)
    users, items = train["user"].to_numpy(np.int64), train["item"].to_numpy(np.int64)

    model = BPR(n_users, n_items, args.dim).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    best = -1.0
    for epoch in range(args.epochs):
        model.train()
        order = rng.permutation(len(users))
        total = 0.0
        for s in range(0, len(order), args.batch_size):
            idx = order[s:s + args.batch_size]
            neg = sample_negatives(users[idx], n_items, seen_train, rng)
            u, i, j = (torch.from_numpy(a).to(device) for a in (users[idx], items[idx], neg))
            diff = model(u, i) - model(u, j)
            reg = model.user(u).pow(2).sum(1) + model.item(i).pow(2).sum(1) + model.item(j).pow(2).sum(1)
            loss = -F.logsigmoid(diff).mean() + args.reg * reg.mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        hr, ndcg = evaluate(model, val, seen_train, device)
        print(f"{epoch:3d} loss {total / len(order):.4f} val HR@10 {hr:.4f} NDCG@10 {ndcg:.4f}")
        if ndcg > best:
            best = ndcg
            torch.save({"model": model.state_dict(), "args": vars(args)}, args.out)

    model.load_state_dict(torch.load(args.out, map_location=device)["model"])
    hr, ndcg = evaluate(model, test, seen_train_val, device)
    print(f"test HR@10 {hr:.4f} NDCG@10 {ndcg:.4f}")


if __name__ == "__main__":
    main()
