"""Implicit-feedback recommender: matrix factorisation with BPR and sampled negatives.

For every user one watched film is kept for validation and one for the test; recall@10
is measured against all films the user has not watched in training.
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)


def synthesize(n_users, n_items, n_genres, rng):
    genre = rng.integers(0, n_genres, n_items)
    appeal = rng.gumbel(0, 0.5, n_items)
    rows, val, test = [], [], []
    for u in range(n_users):
        liked = rng.choice(n_genres, 2, replace=False)
        score = appeal + 5.0 * np.isin(genre, liked) + rng.gumbel(0, 1.0, n_items)
        seen = np.argsort(-score)[:22]
        seen = rng.permutation(seen)
        val.append(seen[0])
        test.append(seen[1])
        rows += [(u, i) for i in seen[2:]]
    return torch.tensor(rows), torch.tensor(np.array(val)), torch.tensor(np.array(test))


class MF(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.bias = nn.Embedding(n_items, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1) + self.bias(i).squeeze(-1)

    def all_scores(self):
        return self.user.weight @ self.item.weight.T + self.bias.weight.T


def sample_negatives(users, watched, n_items):
    neg = torch.randint(0, n_items, users.shape)
    for _ in range(3):
        bad = watched[users, neg]
        neg = torch.where(bad, torch.randint(0, n_items, users.shape), neg)
    return neg


@torch.no_grad()
def recall_at(model, held_out, watched, k=10):
    scores = model.all_scores()
    scores = scores.masked_fill(watched, -1e9)
    top = scores.topk(k, 1).indices
    return (top == held_out[:, None]).any(1).float().mean().item()


def train(args):
    rng = np.random.default_rng(args.seed)
    torch.manual_seed(args.seed)
    inter, val, test = synthesize(args.users, args.items, 12, rng)
    watched = torch.zeros(args.users, args.items, dtype=torch.bool)
    watched[inter[:, 0], inter[:, 1]] = True

    model = MF(args.users, args.items, args.dim)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=args.wd)
    users, items = inter[:, 0], inter[:, 1]
    for epoch in range(args.epochs):
        perm = torch.randperm(len(inter))
        users, items = users[perm], items[perm]
        neg = sample_negatives(users, watched, args.items)
        total = correct = 0.0
        for s in range(0, len(users), args.batch):
            u, p, n = users[s:s + args.batch], items[s:s + args.batch], neg[s:s + args.batch]
            margin = model(u, p) - model(u, n)
            loss = -F.logsigmoid(margin).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(u)
            correct += (margin > 0).sum().item()
        if (epoch + 1) % 3 == 0:
            r = recall_at(model, val, watched)
            print(f"epoch {epoch + 1}: bpr loss {total / len(users):.4f} "
                  f"train auc {correct / len(users):.3f} val recall@10 {r:.3f}")
    return model, test, watched


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--users", type=int, default=1500)
    p.add_argument("--items", type=int, default=300)
    p.add_argument("--dim", type=int, default=16)
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--batch", type=int, default=512)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--wd", type=float, default=1e-5)
    p.add_argument("--seed", type=int, default=4)
    args = p.parse_args()
    model, test, watched = train(args)
    chance = 10 / (args.items - 20)
    print(f"test recall@10 {recall_at(model, test, watched):.3f} (random order would give {chance:.3f})")
