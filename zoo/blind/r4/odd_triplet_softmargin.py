# Soft-margin triplet loss; no normalisation of the embeddings, distances are squared and grow without bound.
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
N_CLS, DIM = 15, 30
centers = torch.randn(N_CLS, 4)
mix = torch.randn(4, DIM)


def sample(n):
    y = torch.randint(0, N_CLS, (n,))
    x = torch.sin((centers[y] + 0.15 * torch.randn(n, 4)) @ mix) + 0.5 * torch.randn(n, DIM)
    return x, y


gallery_x, gallery_y = sample(400)
query_x, query_y = sample(200)
net = nn.Sequential(nn.Linear(DIM, 64), nn.ELU(), nn.Linear(64, 12))
opt = torch.optim.RMSprop(net.parameters(), lr=5e-4)


def mine(e, y):
    d = torch.cdist(e, e, compute_mode="donot_use_mm_for_euclid_dist").pow(2)
    same = y[:, None] == y[None]
    eye = torch.eye(len(y), dtype=torch.bool)
    pos = d.masked_fill(~same | eye, -1).max(1).values
    neg = d.masked_fill(same, 1e9).min(1).values
    ok = pos >= 0                        # anchors alone in their class are left out
    return pos[ok], neg[ok]


def recall():
    with torch.no_grad():
        near = torch.cdist(net(query_x), net(gallery_x)).argmin(1)
    return (gallery_y[near] == query_y).float().mean().item()


print(f"start recall@1 {recall():.3f}")
for step in range(1, 401):
    idx = torch.randint(0, len(gallery_x), (60,))
    pos, neg = mine(net(gallery_x[idx] + 0.1 * torch.randn(60, DIM)), gallery_y[idx])
    loss = F.softplus(pos - neg).mean()
    opt.zero_grad(set_to_none=False)
    loss.backward()
    opt.step()
    if step % 50 == 0:
        print(f"{step} loss {loss.item():.3f} kept anchors {len(pos)} recall@1 {recall():.3f}")
