"""Matrix factorisation with BPR on implicit feedback; leave-last-out evaluation with recall@k and NDCG@k."""
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

cfg = dict(path="events.csv", dim=64, batch_size=2048, epochs=40, lr=1e-3, l2=1e-5,
           k=20, patience=5, min_events=5, seed=11, ckpt="bpr.pt")


def read_events(cfg):
    """Columns user, item, ts. Returns train pairs and one validation and one test item per user."""
    df = pd.read_csv(cfg["path"]).drop_duplicates(["user", "item"])
    counts = df["user"].value_counts()
    df = df[df["user"].isin(counts[counts >= cfg["min_events"]].index)].copy()
    df["u"] = df["user"].astype("category").cat.codes.astype(int)
    df["i"] = df["item"].astype("category").cat.codes.astype(int)
    df = df.sort_values(["u", "ts"])
    age = df.groupby("u").cumcount(ascending=False)     # 0 = newest event of the user
    train = df[age >= 2][["u", "i"]].to_numpy()
    valid = df[age == 1].set_index("u")["i"].sort_index().to_numpy()
    test = df[age == 0].set_index("u")["i"].sort_index().to_numpy()
    return train, valid, test, df["u"].nunique(), df["i"].nunique()


class BPRDataset(Dataset):
    def __init__(self, pairs, n_items):
        self.pairs = pairs
        self.n_items = n_items
        self.seen = set(map(tuple, pairs.tolist()))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, idx):
        u, pos = self.pairs[idx]
        neg = int(torch.randint(self.n_items, (1,)))
        while (int(u), neg) in self.seen:
            neg = int(torch.randint(self.n_items, (1,)))
        return int(u), int(pos), neg


class MF(nn.Module):
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


def seen_mask(pairs, n_users, n_items):
    mask = torch.zeros(n_users, n_items, dtype=torch.bool)
    mask[pairs[:, 0], pairs[:, 1]] = True
    return mask


@torch.no_grad()
def evaluate(model, targets, mask, k, device):
    model.eval()
    recall, ndcg = 0.0, 0.0
    n_users = len(targets)
    for users in torch.arange(n_users).split(1024):
        scores = model.all_scores(users.to(device)).cpu()
        scores[mask[users]] = float("-inf")
        top = scores.topk(k, dim=1).indices
        hit = top == torch.as_tensor(targets[users.numpy()]).unsqueeze(1)
        recall += hit.any(dim=1).sum().item()
        gain = 1.0 / torch.log2(torch.arange(k) + 2.0)
        ndcg += (hit.float() * gain).sum().item()
    return recall / n_users, ndcg / n_users


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg["seed"])
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        train, self.valid, self.test, n_users, n_items = read_events(cfg)
        self.loader = DataLoader(BPRDataset(train, n_items), cfg["batch_size"], shuffle=True, num_workers=4)
        self.model = MF(n_users, n_items, cfg["dim"]).to(self.device)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=cfg["lr"])
        self.mask_train = seen_mask(train, n_users, n_items)
        self.mask_test = self.mask_train.clone()
        self.mask_test[torch.arange(n_users), torch.as_tensor(self.valid)] = True

    def step(self, u, pos, neg):
        diff = self.model(u, pos) - self.model(u, neg)
        reg = (self.model.user(u).pow(2).sum() + self.model.item(pos).pow(2).sum()
               + self.model.item(neg).pow(2).sum()) / len(u)
        loss = -F.logsigmoid(diff).mean() + self.cfg["l2"] * reg
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def fit(self):
        best, bad = -1.0, 0
        for epoch in range(self.cfg["epochs"]):
            self.model.train()
            losses = [self.step(*(t.to(self.device) for t in batch)) for batch in self.loader]
            recall, ndcg = evaluate(self.model, self.valid, self.mask_train, self.cfg["k"], self.device)
            print(f"{epoch:2d} loss {np.mean(losses):.4f} recall {recall:.4f} ndcg {ndcg:.4f}")
            if ndcg > best:
                best, bad = ndcg, 0
                torch.save(self.model.state_dict(), self.cfg["ckpt"])
            else:
                bad += 1
                if bad == self.cfg["patience"]:
                    break
        self.model.load_state_dict(torch.load(self.cfg["ckpt"], map_location=self.device))
        print("test recall %.4f ndcg %.4f" % evaluate(self.model, self.test, self.mask_test,
                                                      self.cfg["k"], self.device))


if __name__ == "__main__":
    Trainer(cfg).fit()
