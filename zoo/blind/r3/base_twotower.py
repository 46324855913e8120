import argparse
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def build_interactions(n_users, n_items, per_user, rng):
    """Users like items close to them in a hidden 8-d taste space."""
    u = rng.normal(size=(n_users, 8))
    v = rng.normal(size=(n_items, 8))
    score = u @ v.T + rng.gumbel(size=(n_users, n_items)) * 0.7
    top = np.argsort(-score, axis=1)[:, :per_user]
    for row in top:
        rng.shuffle(row)
    u_feat = u @ rng.normal(size=(8, 12)) + 0.5 * rng.normal(size=(n_users, 12))
    v_feat = v @ rng.normal(size=(8, 12)) + 0.5 * rng.normal(size=(n_items, 12))
    return top, torch.tensor(u_feat, dtype=torch.float32), torch.tensor(v_feat, dtype=torch.float32)


class Tower(nn.Module):
    def __init__(self, n_ids, n_feat, dim):
        super().__init__()
        self.emb = nn.Embedding(n_ids, 16)
        nn.init.normal_(self.emb.weight, std=0.05)
        self.mlp = nn.Sequential(nn.Linear(16 + n_feat, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, ids, feat):
        return F.normalize(self.mlp(torch.cat([self.emb(ids), feat], dim=1)), dim=1)


class TwoTower(nn.Module):
    def __init__(self, n_users, n_items, n_feat, dim=24, temperature=0.1):
        super().__init__()
        self.user_tower = Tower(n_users, n_feat, dim)
        self.item_tower = Tower(n_items, n_feat, dim)
        self.temperature = temperature

    def forward(self, u, uf, i, vf):
        logits = self.user_tower(u, uf) @ self.item_tower(i, vf).T / self.temperature
        same = (i[:, None] == i[None, :]) & ~torch.eye(len(i), dtype=torch.bool)
        return logits.masked_fill(same, -1e9)


@torch.no_grad()
def recall_at_k(model, u_feat, v_feat, seen, held_out, k=20):
    model.eval()
    catalogue = DataLoader(TensorDataset(torch.arange(len(v_feat)), v_feat), batch_size=128, shuffle=False)
    index = torch.cat([model.item_tower(i, f) for i, f in catalogue])
    scores = model.user_tower(torch.arange(len(u_feat)), u_feat) @ index.T
    scores.scatter_(1, seen, -1e9)
    top = scores.topk(k, dim=1).indices
    return (top == held_out[:, None]).any(1).float().mean().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--users", type=int, default=500)
    p.add_argument("--items", type=int, default=300)
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch-size", type=int, default=128)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    top, u_feat, v_feat = build_interactions(args.users, args.items, 12, rng)
    seen, held_out = torch.tensor(top[:, :-1]), torch.tensor(top[:, -1])
    users = torch.arange(args.users).repeat_interleave(seen.shape[1])
    train = DataLoader(TensorDataset(users, seen.reshape(-1)), batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = TwoTower(args.users, args.items, u_feat.shape[1])
    params = list(model.user_tower.parameters()) + list(model.item_tower.parameters())
    opt = torch.optim.Adam(params, lr=args.lr)
    print(f"random recall@20 would be {20 / (args.items - seen.shape[1]):.3f}")
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for u, i in train:
            logits = model(u, u_feat[u], i, v_feat[i])
            loss = F.cross_entropy(logits, torch.arange(len(u)))
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            losses.append(loss.item())
        r = recall_at_k(model, u_feat, v_feat, seen, held_out)
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}  recall@20 {r:.3f}")


if __name__ == "__main__":
    main()
