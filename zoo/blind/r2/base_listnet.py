import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader

MAX_DOCS = 14


class QueryDataset(Dataset):
    """One item = one query with a variable number of documents."""

    def __init__(self, n_queries, n_feat, weights, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n_queries):
            n = int(torch.randint(6, MAX_DOCS + 1, (1,), generator=g))
            x = torch.randn(n, n_feat, generator=g)
            u = x @ weights + 1.2 * torch.sin(2 * x[:, 0]) * x[:, 1] + 0.2 * torch.randn(n, generator=g)
            rel = torch.bucketize(u, torch.tensor([-0.5, 0.8, 1.8, 3.0])).float()
            self.items.append((x, rel))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        x, rel = self.items[i]
        perm = torch.randperm(len(rel))
        return x[perm], rel[perm]


def collate(batch):
    xs, rels, masks = [], [], []
    for x, rel in batch:
        pad = MAX_DOCS - len(rel)
        xs.append(F.pad(x, (0, 0, 0, pad)))
        rels.append(F.pad(rel, (0, pad)))
        masks.append(torch.arange(MAX_DOCS) < len(rel))
    return torch.stack(xs), torch.stack(rels), torch.stack(masks)


class Scorer(nn.Module):
    def __init__(self, n_feat, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_feat, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


def listnet(scores, rel, mask):
    scores = scores.masked_fill(~mask, -1e4)
    target = F.softmax(rel.masked_fill(~mask, -1e4), dim=1)
    return F.kl_div(F.log_softmax(scores, dim=1), target, reduction="batchmean")


def ndcg(scores, rel, mask, k=5):
    scores = scores.masked_fill(~mask, float("-inf"))
    gain = (2.0 ** rel - 1) * mask
    disc = 1.0 / torch.log2(torch.arange(k) + 2.0)
    top = gain.gather(1, scores.topk(k, dim=1).indices)
    best = gain.topk(k, dim=1).values
    return ((top * disc).sum(1) / (best * disc).sum(1).clamp(min=1e-6)).mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--hidden", type=int, default=48)
    args = ap.parse_args()
    torch.manual_seed(7)
    weights = torch.tensor([0.9, -0.7, 0.6, 0.5, -0.4, 0.3, 0.0, 0.0, 0.0, 0.0])
    train = DataLoader(QueryDataset(400, 10, weights, 1), batch_size=16, shuffle=True, collate_fn=collate)
    valid = DataLoader(QueryDataset(150, 10, weights, 2), batch_size=50, collate_fn=collate)
    model = Scorer(10, args.hidden)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, rel, mask in train:
            loss = listnet(model(x), rel, mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            score = sum(ndcg(model(x), rel, mask) for x, rel, mask in valid) / len(valid)
        print(f"epoch {epoch:2d}  loss {total / len(train):.4f}  val ndcg@5 {score:.4f}")


if __name__ == "__main__":
    main()
