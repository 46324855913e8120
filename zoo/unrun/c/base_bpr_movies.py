"""Matrix factorisation with BPR on implicit feedback, leave-last-out evaluation."""
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F


class Interactions:
    def __init__(self, path, min_rating=4, min_items=5):
        df = pd.read_csv(path)  # user_id, item_id, rating, timestamp
        df = df[df["rating"] >= min_rating].drop_duplicates(["user_id", "item_id"])
        df = df[df.groupby("user_id")["item_id"].transform("size") >= min_items].copy()
        df["u"] = df["user_id"].astype("category").cat.codes.astype(np.int64)
        df["i"] = df["item_id"].astype("category").cat.codes.astype(np.int64)
        self.n_users, self.n_items = df["u"].nunique(), df["i"].nunique()

        df = df.sort_values(["u", "timestamp"])
        from_end = df.groupby("u").cumcount(ascending=False)
        train, val, test = df[from_end >= 2], df[from_end == 1], df[from_end == 0]
        self.users = torch.tensor(train["u"].values)
        self.items = torch.tensor(train["i"].values)
        self.val_items = torch.tensor(val.set_index("u")["i"].sort_index().values)
        self.test_items = torch.tensor(test.set_index("u")["i"].sort_index().values)
        self.seen = torch.zeros(self.n_users, self.n_items, dtype=torch.bool)
        self.seen[self.users, self.items] = True

    def __len__(self):
        return len(self.users)

    def sample_negatives(self, users):
        neg = torch.randint(self.n_items, users.shape)
        clash = self.seen[users, neg]
        while clash.any():
            neg[clash] = torch.randint(self.n_items, (int(clash.sum()),))
            clash = self.seen[users, neg]
        return neg

    def batches(self, size):
        order = torch.randperm(len(self))
        for start in range(0, len(self), size):
            idx = order[start:start + size]
            users = self.users[idx]
            yield users, self.items[idx], self.sample_negatives(users)


class BPRMF(nn.Module):
    def __init__(self, n_users, n_items, dim=64):
        super().__init__()
        self.user_emb = nn.Embedding(n_users, dim)
        self.item_emb = nn.Embedding(n_items, dim)
        self.item_bias = nn.Embedding(n_items, 1)
        nn.init.normal_(self.user_emb.weight, std=0.05)
        nn.init.normal_(self.item_emb.weight, std=0.05)
        nn.init.zeros_(self.item_bias.weight)

    def forward(self, users, items):
        dot = (self.user_emb(users) * self.item_emb(items)).sum(dim=1)
        return dot + self.item_bias(items).squeeze(1)

    def score_all(self, users):
        return self.user_emb(users) @ self.item_emb.weight.T + self.item_bias.weight.squeeze(1)

    def l2(self, users, *item_sets):
        reg = self.user_emb(users).pow(2).sum()
        for items in item_sets:
            reg = reg + self.item_emb(items).pow(2).sum()
        return reg / len(users)


class Recommender:
    def __init__(self, data, dim=64, lr=1e-3, reg=1e-4, device="cpu"):
        self.data, self.reg, self.device = data, reg, device
        self.model = BPRMF(data.n_users, data.n_items, dim).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)

    def train_epoch(self, batch_size=4096):
        self.model.train()
        total = 0.0
        for users, pos, neg in self.data.batches(batch_size):
            users, pos, neg = users.to(self.device), pos.to(self.device), neg.to(self.device)
            pos_score, neg_score = self.model(users, pos), self.model(users, neg)
            loss = -F.logsigmoid(pos_score - neg_score).mean()
            loss = loss + self.reg * self.model.l2(users, pos, neg)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(users)
        return total / len(self.data)

    @torch.no_grad()
    def evaluate(self, target_items, also_seen=None, k=10, chunk=512):
        self.model.eval()
        hits = ndcg = 0.0
        for users in torch.arange(self.data.n_users).split(chunk):
            scores = self.model.score_all(users.to(self.device)).cpu()
            mask = self.data.seen[users].clone()
            if also_seen is not None:
                mask[torch.arange(len(users)), also_seen[users]] = True
            scores[mask] = float("-inf")
            target = scores.gather(1, target_items[users].unsqueeze(1))
            rank = (scores > target).sum(dim=1)  # 0 = top of the list
            hit = rank < k
            hits += hit.sum().item()
            ndcg += (hit / torch.log2(rank + 2.0)).sum().item()
        return hits / self.data.n_users, ndcg / self.data.n_users

    def fit(self, epochs=100, patience=5, path="bprmf.pt"):
        best, wait = 0.0, 0
        for epoch in range(epochs):
            loss = self.train_epoch()
            hr, ndcg = self.evaluate(self.data.val_items)
            print(f"epoch {epoch} loss {loss:.4f} val HR@10 {hr:.4f} NDCG@10 {ndcg:.4f}")
            if ndcg > best:
                best, wait = ndcg, 0
                torch.save(self.model.state_dict(), path)
            else:
                wait += 1
                if wait >= patience:
                    break
        self.model.load_state_dict(torch.load(path))


if __name__ == "__main__":
    torch.manual_seed(0)
    data = Interactions("data/ml-1m/ratings.csv")
    rec = Recommender(data, device="cuda" if torch.cuda.is_available() else "cpu")
    rec.fit()
    hr, ndcg = rec.evaluate(data.test_items, also_seen=data.val_items)
    print(f"test HR@10 {hr:.4f} NDCG@10 {ndcg:.4f}")
