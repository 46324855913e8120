import torch
import torch.nn as nn

torch.manual_seed(31)
proto = torch.randn(15, 20) * 1.3


def triplet(n=64):
    a = torch.randint(0, 15, (n,))
    b = (a + torch.randint(1, 15, (n,))) % 15
    noise = lambda: 1.0 * torch.randn(n, 20)
    return proto[a] + noise(), proto[a] + noise(), proto[b] + noise()


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 8))

    def forward(self, x):
        return self.f(x)


e = Embed()
lossf = nn.TripletMarginLoss(margin=0.5)
opt = torch.optim.Adam(e.parameters(), lr=3e-3)
for it in range(300):
    a, p, n = map(e, triplet())
    loss = lossf(a, p, n)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 50 == 0 or it == 299:
        ok = ((a - p).norm(dim=1) < (a - n).norm(dim=1)).float().mean().item()
        print(f"it {it} triplet loss {loss.item():.4f} ordered {ok:.3f}")
