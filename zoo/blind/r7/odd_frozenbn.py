"""Fine-tuning with frozen batch norm: the backbone stays in eval mode while training, since batches have two rows."""
import torch
import torch.nn as nn

torch.manual_seed(28)
torch.set_num_threads(1)


def make(n, gain):
    x = torch.randn(n, 12)
    y = gain * torch.tanh(x[:, :1] + x[:, 1:2] * x[:, 2:3]) + 0.2 * x[:, 3:4]
    return x, y + 0.05 * torch.randn(n, 1)


x_src, y_src = make(4000, 1.0)
x_train, y_train = make(300, -0.8)
x_val, y_val = make(400, -0.8)
x_test, y_test = make(800, -0.8)

body = nn.Sequential(nn.Linear(12, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU())
head = nn.Linear(64, 1)
opt = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=3e-3)
for epoch in range(10):
    perm = torch.randperm(len(x_src))
    for i in range(0, len(perm), 100):
        rows = perm[i:i + 100]
        loss = (head(body(x_src[rows])) - y_src[rows]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
print(f"pretrained loss {loss.item():.4f}")

head = nn.Linear(64, 1)
running = [m.running_mean.clone() for m in body if isinstance(m, nn.BatchNorm1d)]
for m in body:
    if isinstance(m, nn.BatchNorm1d):
        m.requires_grad_(False)
opt = torch.optim.Adam([{"params": [p for p in body.parameters() if p.requires_grad], "lr": 2e-4},
                        {"params": head.parameters(), "lr": 3e-3}])

body.eval()          # statistics of the pretraining data are kept
for epoch in range(6):
    head.train()
    perm, total = torch.randperm(len(x_train)), 0.0
    for i in range(0, len(perm), 2):
        rows = perm[i:i + 2]
        loss = (head(body(x_train[rows])) - y_train[rows]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(rows)
    with torch.no_grad():
        val = (head(body(x_val)) - y_val).pow(2).mean().item()
    print(f"epoch {epoch} train {total / len(perm):.4f} val {val:.4f}")

kept = all(torch.equal(a, m.running_mean) for a, m in zip(running, [m for m in body if isinstance(m, nn.BatchNorm1d)]))
with torch.no_grad():
    mse = (head(body(x_test)) - y_test).pow(2).mean().item()
print(f"statistics kept {kept}; test mse {mse:.4f} r2 {1 - mse / y_test.var().item():.4f}")
