"""Metric learning with batch-hard triplets: the loss hovers near the margin although retrieval improves."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(6)
dim, n_train_ids, n_test_ids, margin = 48, 120, 40, 0.2
mixing = torch.randn(10, dim)
warp = torch.randn(dim, dim) / dim ** 0.5


def identities(n, per):
    """Identity lives in ten directions, larger nuisance variation in all of them."""
    centre = torch.randn(n, 1, 10) @ mixing
    x = centre + 2.2 * torch.randn(n, per, dim)
    return torch.tanh(0.35 * x @ warp) + 0.05 * torch.randn(n, per, dim)


train, test = identities(n_train_ids, 16), identities(n_test_ids, 12)
net = nn.Sequential(nn.Linear(dim, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 32))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-3)


def embed(x):
    return F.normalize(net(x), dim=-1)


@torch.no_grad()
def recall_at_1(x, f):
    n, per, _ = x.shape
    e = f(x.reshape(n * per, -1))
    label = torch.arange(n).repeat_interleave(per)
    d = torch.cdist(e, e)
    d.fill_diagonal_(float("inf"))
    return (label[d.argmin(1)] == label).float().mean().item()


print(f"recall at 1 in the raw space: test {recall_at_1(test, lambda v: v):.3f}")
run, hard = 0.0, 0.0
steps = 900
for i in range(1, steps + 1):
    ids = torch.randperm(n_train_ids)[:16]
    pick = torch.stack([torch.randperm(16)[:6] for _ in ids])
    x = train[ids[:, None], pick].reshape(-1, dim)
    label = torch.arange(16).repeat_interleave(6)
    e = embed(x)
    d = (2 - 2 * e @ e.T).clamp_min(1e-6).sqrt()
    same = label[:, None] == label[None, :]
    if i <= 300:  # mean positive and soft negatives first, hardest ones afterwards
        positive = (d * same).sum(1) / 5
        negative = -torch.logsumexp(-8 * d.masked_fill(same, 1e4), 1) / 8
    else:
        positive = d.masked_fill(~same, -1).max(1).values
        negative = d.masked_fill(same, 10).min(1).values
    loss = F.softplus(6 * (positive - negative + margin)).mean() / 6
    opt.zero_grad()
    loss.backward()
    opt.step()
    run += loss.item()
    hard += (positive > negative).float().mean().item()
    if i % 100 == 0:
        print(f"step {i:4d}  triplet loss {run / 100:.4f}  violated {hard / 100:.3f}  recall at 1 on new identities "
              f"{recall_at_1(test, embed):.3f}")
        run = hard = 0.0
print(f"final recall at 1 on new identities {recall_at_1(test, embed):.3f}")
