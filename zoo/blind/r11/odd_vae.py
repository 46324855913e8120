"""VAE on 8x8 digits with KL warm-up: the printed total loss goes up while beta grows to 1."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(0)
X = torch.tensor((load_digits().data > 7)).float()
X = X[torch.randperm(len(X))]
train, test = X[:1400], X[1400:]


class VAE(nn.Module):
    def __init__(self, z=10):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, x):
        mu, lv = self.enc(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        return self.dec(z), mu, lv


def terms(net, x):
    out, mu, lv = net(x)
    rec = F.binary_cross_entropy_with_logits(out, x, reduction="none").sum(1).mean()
    kl = -0.5 * (1 + lv - mu ** 2 - lv.exp()).sum(1).mean()
    return rec, kl


net = VAE()
opt = torch.optim.Adam(net.parameters(), 2e-3)
EPOCHS, WARM = 80, 50
for epoch in range(EPOCHS):
    beta = min(1.0, epoch / WARM)
    tot = 0
    for i in torch.randperm(1400).split(70):
        rec, kl = terms(net, train[i])
        loss = rec + beta * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() / 20
    if epoch % 8 == 7:
        with torch.no_grad():
            r, k = terms(net, test)
        print(f"epoch {epoch + 1:3d} beta {beta:.2f} objective {tot:.2f} | test rec {r:.2f} kl {k:.2f} -elbo {r + k:.2f}")
p = train.mean(0).clamp(0.01, 0.99)
indep = F.binary_cross_entropy(p.expand_as(test), test, reduction="none").sum(1).mean()
with torch.no_grad():
    r, k = [torch.stack(v).mean() for v in zip(*[terms(net, test) for _ in range(10)])]
print(f"test -elbo {r + k:.2f} nats (independent pixels {indep:.2f})")
