# 1-D GAN: learn a bimodal distribution. Two optimizers, alternating.
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)

def real(n):
    c = torch.where(torch.rand(n, 1) < 0.5, -2.0, 2.0)
    return c + 0.4 * torch.randn(n, 1)

G = nn.Sequential(nn.Linear(4, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
D = nn.Sequential(nn.Linear(1, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
og = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.99))
od = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.99))
ema = torch.optim.swa_utils.AveragedModel(G, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.995))

def w1(n=4000):
    with torch.no_grad():
        a = real(n).squeeze().sort()[0]; b = ema(torch.randn(n, 4)).squeeze().sort()[0]
    return (a - b).abs().mean().item()

print("start W1", round(w1(), 3))
for it in range(1, 1401):
    x = real(128)
    z = torch.randn(128, 4)
    fake = G(z).detach()
    ld = F.softplus(-D(x)).mean() + F.softplus(D(fake)).mean()
    xr = x.clone().requires_grad_(True)
    g, = torch.autograd.grad(D(xr).sum(), xr, create_graph=True)
    ld = ld + 0.3 * g.pow(2).mean()
    od.zero_grad(); ld.backward(); od.step()
    lg = F.softplus(-D(G(z))).mean()
    og.zero_grad(); lg.backward(); og.step()
    ema.update_parameters(G)
    if it % 140 == 0:
        print(f"it {it} D {ld.item():.3f} G {lg.item():.3f} W1 {w1():.3f}")
