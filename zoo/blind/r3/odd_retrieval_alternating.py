"""Two towers trained in turns: even rounds move the users, odd rounds the items. The other tower's vectors are constants then."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
N_U, N_I, D = 400, 240, 6
zu, zi = torch.randn(N_U, D), torch.randn(N_I, D)
fu = torch.cat([zu + 0.3 * torch.randn(N_U, D), torch.randn(N_U, 4)], 1)
fi = torch.cat([zi + 0.3 * torch.randn(N_I, D), torch.randn(N_I, 4)], 1)
liked = (zu @ zi.T + 0.5 * torch.randn(N_U, N_I)).topk(9, 1).indices
liked = liked.gather(1, torch.argsort(torch.rand(N_U, 9), 1))
hist, test = liked[:, :8], liked[:, 8]


def tower():
    return nn.Sequential(nn.Linear(D + 4, 48), nn.GELU(), nn.Linear(48, 16))


users, items = tower(), tower()
opts = {"users": torch.optim.SGD(users.parameters(), lr=0.6, momentum=0.8),
        "items": torch.optim.SGD(items.parameters(), lr=0.6, momentum=0.8)}


def recall():
    with torch.no_grad():
        s = F.normalize(users(fu), dim=1) @ F.normalize(items(fi), dim=1).T
        s.scatter_(1, hist, -9.0)
        return (s.topk(15, 1).indices == test[:, None]).any(1).float().mean().item()


print(f"start recall@15 {recall():.3f}")
for rnd in range(12):
    side = "users" if rnd % 2 == 0 else "items"
    for step in range(30):
        u = torch.randint(0, N_U, (160,))
        i = hist[u, torch.randint(0, 8, (160,))]
        if side == "users":
            a = users(fu[u])
            with torch.no_grad():
                b = items(fi[i])
        else:
            with torch.no_grad():
                a = users(fu[u])
            b = items(fi[i])
        logits = F.normalize(a, dim=1) @ F.normalize(b, dim=1).T * 8.0
        dup = (i[:, None] == i) & ~torch.eye(160, dtype=torch.bool)
        loss = F.cross_entropy(logits.masked_fill(dup, -1e4), torch.arange(160))
        opts[side].zero_grad()
        loss.backward()
        opts[side].step()
    print(f"round {rnd:2d} ({side}) loss {loss.item():.3f} recall@15 {recall():.3f}")
