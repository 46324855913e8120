import torch
import torch.nn as nn

torch.manual_seed(16)


def real(n):
    return torch.randn(n, 2) * torch.tensor([0.3, 0.8]) + torch.tensor([1.5, -1.0])


G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
C = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.RMSprop(G.parameters(), lr=3e-3)
opt_c = torch.optim.RMSprop(C.parameters(), lr=3e-3)

for it in range(150):
    for _ in range(4):
        loss_c = C(G(torch.randn(64, 4)).detach()).mean() - C(real(64)).mean()
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()
        with torch.no_grad():
            for p in C.parameters():
                p.clamp_(-0.1, 0.1)
    loss_g = -C(G(torch.randn(64, 4))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    if it % 30 == 0:
        print(f"it {it} critic {loss_c.item():.4f} generator {loss_g.item():.4f}")
s = G(torch.randn(2000, 4)).detach()
print("generated mean", s.mean(0).tolist(), "std", s.std(0).tolist(), "target mean [1.5, -1.0] std [0.3, 0.8]")
