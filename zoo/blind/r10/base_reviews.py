"""Star rating (1 to 5) from review text and user features: embedding bag, MLP and an ordinal head."""
import argparse
import copy
import time
from collections import Counter

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

STEMS = ["room", "food", "staff", "view", "pool", "bed", "price", "lobby", "noise", "breakfast", "wifi", "shower"]
GOOD = ["great", "lovely", "superb", "clean", "friendly", "perfect", "cosy", "tasty", "quiet", "charming", "fast", "fair"]
BAD = ["dirty", "rude", "awful", "cold", "broken", "noisy", "stale", "slow", "tiny", "overpriced", "smelly", "bland"]
FILL = ["the", "was", "and", "we", "had", "a", "our", "very", "with", "stay", "night", "for", "it", "in", "they"]


def make_reviews(n_users, n_reviews, rng):
    """One row per review in order of time."""
    rare = [f"{s}{k}" for s in STEMS for k in range(40)]
    taste = {w: rng.normal(0, 0.5) for w in rare}
    taste |= {w: rng.normal(1.3, 0.35) for w in GOOD} | {w: rng.normal(-1.4, 0.35) for w in BAD}
    bias = rng.normal(0, 1.1, n_users)
    tenure = rng.gamma(2.0, 400.0, n_users)
    activity = rng.gamma(1.2, 1.0, n_users) + 0.05
    helpful_rate = rng.lognormal(0.0, 1.2, n_users)
    rows = []
    for user in rng.choice(n_users, n_reviews, p=activity / activity.sum()):
        quality = rng.normal(0.2, 1.0)
        words = []
        for _ in range(rng.integers(4, 14)):
            p_good = 1 / (1 + np.exp(-1.6 * quality))
            u = rng.random()
            tone = GOOD if rng.random() < p_good else BAD
            words.append(str(rng.choice(rare if u < 0.3 else STEMS if u < 0.45 else tone)))
            words += [str(w) for w in rng.choice(FILL, rng.integers(1, 3))]
        text_score = np.mean([taste.get(w, 0.0) for w in words]) * 3.2
        strict = -0.25 * np.log1p(tenure[user] / 400)
        z = text_score + bias[user] + strict + 0.6 * rng.normal()
        stars = 1 + int(np.searchsorted([-2.2, -1.0, 0.0, 1.2], z))
        rows.append({"user": int(user), "text": " ".join(words), "stars": stars, "tenure": tenure[user],
                     "helpful": int(rng.poisson(helpful_rate[user] * 2)), "verified": float(rng.random() < 0.7)})
    return rows


def add_history(rows, prior=3.1, strength=1.5):
    """Mean rating of the user as known when the review is written, shrunk to the prior."""
    total, count = Counter(), Counter()
    for r in rows:
        u = r["user"]
        r["user_mean"] = (total[u] + prior * strength) / (count[u] + strength)
        r["user_count"] = count[u]
        total[u] += r["stars"]
        count[u] += 1


def build_vocab(rows, min_count=3):
    counts = Counter(w for r in rows for w in r["text"].split())
    return {w: i + 1 for i, w in enumerate(sorted(w for w, c in counts.items() if c >= min_count))}


def features(rows):
    x = np.array([[r["user_mean"], np.log1p(r["user_count"]), np.log1p(r["tenure"]), np.log1p(r["helpful"]),
                   r["verified"], np.log1p(len(r["text"].split()))] for r in rows])
    return x.astype(np.float32)


class Reviews:
    def __init__(self, rows, vocab, mean, std):
        self.tokens = [torch.tensor([vocab.get(w, 0) for w in r["text"].split()]) for r in rows]
        self.user = torch.from_numpy((features(rows) - mean) / std)
        self.stars = torch.tensor([r["stars"] for r in rows])

    def __len__(self):
        return len(self.stars)

    def batches(self, size, shuffle=False):
        order = torch.randperm(len(self)) if shuffle else torch.arange(len(self))
        for idx in order.split(size):
            docs = [self.tokens[i] for i in idx]
            lengths = torch.tensor([0] + [len(d) for d in docs[:-1]])
            yield torch.cat(docs), lengths.cumsum(0), self.user[idx], self.stars[idx]


class OrdinalModel(nn.Module):
    """Cumulative logit model: P(stars <= k) = sigmoid(threshold_k - score)."""

    def __init__(self, n_words, n_user, dim=32, levels=5):
        super().__init__()
        self.bag = nn.EmbeddingBag(n_words, dim, mode="mean")
        nn.init.normal_(self.bag.weight, std=0.1)
        self.user = nn.Sequential(nn.Linear(n_user, 32), nn.ReLU())
        self.mix = nn.Sequential(nn.Linear(dim + 32, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 1))
        self.first = nn.Parameter(torch.tensor(-1.5))
        self.gaps = nn.Parameter(torch.zeros(levels - 2))

    def forward(self, tokens, offsets, user):
        h = torch.cat([self.bag(tokens, offsets), self.user(user)], dim=1)
        score = self.mix(h).squeeze(1)
        thresholds = self.first + F.pad(F.softplus(self.gaps).cumsum(0), (1, 0))
        return thresholds - score[:, None]


def ordinal_nll(cum_logits, stars):
    cdf = F.pad(F.pad(torch.sigmoid(cum_logits), (1, 0), value=0.0), (0, 1), value=1.0)
    k = (stars - 1)[:, None]
    p = cdf.gather(1, k + 1) - cdf.gather(1, k)
    return -torch.log(p.clamp_min(1e-6)).mean()


def decode(cum_logits):
    return 1 + (cum_logits < 0).sum(1)


def kappa(pred, truth, levels=5):
    """Quadratic weighted kappa."""
    conf = np.zeros((levels, levels))
    np.add.at(conf, (truth - 1, pred - 1), 1)
    w = np.subtract.outer(np.arange(levels), np.arange(levels)) ** 2
    expected = np.outer(conf.sum(1), conf.sum(0)) / conf.sum()
    return 1 - (w * conf).sum() / (w * expected).sum()


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    loss, preds = 0.0, []
    for tokens, offsets, user, stars in data.batches(256):
        out = model(tokens, offsets, user)
        loss += ordinal_nll(out, stars).item() * len(stars)
        preds.append(decode(out))
    pred, truth = torch.cat(preds).numpy(), data.stars.numpy()
    return loss / len(data), np.abs(pred - truth).mean(), kappa(pred, truth)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=16)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--lr", type=float, default=6e-4)
    ap.add_argument("--seed", type=int, default=2)
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)

    rows = make_reviews(3000, 13000, np.random.default_rng(args.seed))
    add_history(rows)
    a, b = int(0.7 * len(rows)), int(0.85 * len(rows))
    vocab = build_vocab(rows[:a])
    x = features(rows[:a])
    mean, std = x.mean(0), x.std(0)
    train, val, test = (Reviews(part, vocab, mean, std) for part in (rows[:a], rows[a:b], rows[b:]))

    model = OrdinalModel(len(vocab) + 1, x.shape[1])
    optimizer = torch.optim.AdamW([{"params": model.bag.parameters(), "lr": 3 * args.lr, "weight_decay": 0.0},
                                   {"params": model.user.parameters()}, {"params": model.mix.parameters()},
                                   {"params": [model.first, model.gaps], "lr": 5 * args.lr, "weight_decay": 0.0}],
                                  lr=args.lr, weight_decay=0.02)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    print(f"{len(train)} train, {len(val)} val, {len(test)} test reviews, {len(vocab)} words")

    best, state, start = None, None, time.time()
    for epoch in range(1, args.epochs + 1):
        model.train()
        total = 0.0
        for tokens, offsets, user, stars in train.batches(args.batch_size, shuffle=True):
            optimizer.zero_grad()
            loss = ordinal_nll(model(tokens, offsets, user), stars)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(stars)
        scheduler.step()
        val_loss, mae, qwk = evaluate(model, val)
        if best is None or mae < best:
            best, state = mae, copy.deepcopy(model.state_dict())
        print(f"epoch {epoch:2d}  train {total / len(train):.4f}  val {val_loss:.4f}  MAE {mae:.3f}  "
              f"kappa {qwk:.3f}  ({time.time() - start:.1f}s)")
    model.load_state_dict(state)
    loss, mae, qwk = evaluate(model, test)
    print(f"best val MAE {best:.3f}  test loss {loss:.4f}  test MAE {mae:.3f}  test kappa {qwk:.3f}")


if __name__ == "__main__":
    main()
