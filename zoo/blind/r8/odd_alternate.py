"""Rating matrix, alternating optimizers: one epoch moves only users, the next only items; each half is off half of the time."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(11)
U, I, K = 300, 200, 4
truth = torch.randn(U, K) @ torch.randn(K, I) / K ** 0.5 + torch.randn(U, 1) * 0.5 + 3
pairs = torch.nonzero(torch.rand(U, I) < 0.22)
pairs = pairs[torch.randperm(len(pairs))]
rating = truth[pairs[:, 0], pairs[:, 1]] + 0.2 * torch.randn(len(pairs))
cut = int(0.85 * len(pairs))
users, items = nn.Embedding(U, K), nn.Embedding(I, K)
bias_u, bias_i = nn.Embedding(U, 1), nn.Embedding(I, 1)
for e in (users, items):
    nn.init.normal_(e.weight, std=0.3)
for e in (bias_u, bias_i):
    nn.init.zeros_(e.weight)
opt_u = torch.optim.Adam([*users.parameters(), *bias_u.parameters()], lr=0.03)
opt_i = torch.optim.Adam([*items.parameters(), *bias_i.parameters()], lr=0.03)
base = rating[:cut].mean()


def predict(p):
    u, i = p[:, 0], p[:, 1]
    return base + bias_u(u).squeeze(1) + bias_i(i).squeeze(1) + (users(u) * items(i)).sum(1)


for epoch in range(24):
    opt = opt_u if epoch % 2 == 0 else opt_i
    for part in (users, bias_u):
        part.requires_grad_(epoch % 2 == 0)
    for part in (items, bias_i):
        part.requires_grad_(epoch % 2 == 1)
    run = 0.0
    for idx in torch.randperm(cut).split(256):
        e = predict(pairs[idx]) - rating[idx]
        loss = (e ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item() * len(idx)
    with torch.no_grad():
        rmse = ((predict(pairs[cut:]) - rating[cut:]) ** 2).mean().sqrt()
    if epoch % 3 == 2:
        print(f"epoch {epoch:2d} moving {'users' if epoch % 2 == 0 else 'items'} train mse {run / cut:.4f} test rmse {rmse:.3f}")
print(f"std of the ratings {rating.std():.3f}, noise 0.2")
