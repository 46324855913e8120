import torch
import torch.nn as nn

torch.manual_seed(30)
device = "cuda" if torch.cuda.is_available() else "cpu"
USERS, ITEMS, K = 150, 90, 16

taste = torch.randn(USERS, 4)
style = torch.randn(ITEMS, 4)
liked = (taste @ style.T > 0.5).float()


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.u = nn.Embedding(USERS, K)
        self.i = nn.Embedding(ITEMS, K)
        self.mlp = nn.Sequential(nn.Linear(3 * K, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, u, i):
        a, b = self.u(u), self.i(i)
        z = torch.cat([a, b, a * b], -1)
        return torch.sigmoid(self.mlp(z)).squeeze(-1)


def entropy(p, t):
    return -(t * torch.log(p) + (1 - t) * torch.log(1 - p)).mean()


def sample(n):
    u = torch.randint(0, USERS, (n,))
    i = torch.randint(0, ITEMS, (n,))
    return u.to(device), i.to(device), liked[u, i].to(device)


def main():
    model = TwoTower().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1.5e-2)
    for step in range(500):
        u, i, t = sample(128)
        with torch.autocast(device, dtype=torch.bfloat16):
            p = model(u, i)
            loss = entropy(p, t)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            acc = ((p > 0.5).float() == t).float().mean()
            print(f"step {step} bce {loss.item():.4f} acc {acc.item():.3f}")


main()
