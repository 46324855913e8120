import random
import torch
from torch import nn
import torch.nn.functional as F


class Config:
    classes_per_batch = 8
    samples_per_class = 4
    margin = 1.0
    lr = 1e-3
    steps = 300
    emb = 16


class IdentityData:
    """Each identity has a latent code; observations are nonlinear views of it with nuisance factors."""

    def __init__(self, mix, n_id, per_id, seed):
        g = torch.Generator().manual_seed(seed)
        code = torch.randn(n_id, 8, generator=g)
        self.labels = torch.arange(n_id).repeat_interleave(per_id)
        z = code[self.labels] + 0.15 * torch.randn(len(self.labels), 8, generator=g)
        nuisance = 1.0 * torch.randn(len(self.labels), 8, generator=g)
        self.x = torch.tanh(torch.cat([z, nuisance], 1) @ mix * 0.5) + 0.05 * torch.randn(len(z), 32, generator=g)
        self.n_id, self.per_id = n_id, per_id

    def pk_batch(self, p, k):
        ids = random.sample(range(self.n_id), p)
        idx = [i * self.per_id + j for i in ids for j in random.sample(range(self.per_id), k)]
        return self.x[idx], self.labels[idx]


class Embedder(nn.Module):
    def __init__(self, out):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, out)
        )

    def forward(self, x):
        return self.layers(x)


def pairwise(e):
    sq = ((e[:, None] - e[None, :]) ** 2).sum(-1)
    return torch.sqrt(sq + 1e-8)


def batch_hard(e, labels, margin):
    d = pairwise(e)
    same = labels[:, None] == labels[None, :]
    pos = d.masked_fill(~same, 0.0).max(1).values
    neg = d.masked_fill(same, 1e6).min(1).values
    return F.relu(pos - neg + margin).mean()


@torch.no_grad()
def recall_at_1(net, data):
    e = net(data.x)
    d = torch.cdist(e, e)
    d.fill_diagonal_(1e6)
    return (data.labels[d.argmin(1)] == data.labels).float().mean().item()


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        random.seed(0)
        torch.manual_seed(0)
        mix = torch.randn(16, 32)
        self.train_set = IdentityData(mix, 80, 8, 1)
        self.test_set = IdentityData(mix, 40, 6, 2)
        self.net = Embedder(cfg.emb)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=cfg.lr)

    def fit(self):
        cfg = self.cfg
        print(f"start: recall@1 on new identities {recall_at_1(self.net, self.test_set):.3f}")
        acc = 0.0
        for step in range(1, cfg.steps + 1):
            x, labels = self.train_set.pk_batch(cfg.classes_per_batch, cfg.samples_per_class)
            loss = batch_hard(self.net(x), labels, cfg.margin)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            acc += loss.item()
            if step % 50 == 0:
                print(f"step {step} triplet loss {acc / 50:.4f} recall@1 {recall_at_1(self.net, self.test_set):.3f}")
                acc = 0.0


if __name__ == "__main__":
    Trainer(Config()).fit()
