# VAE, ELBO summed over pixels and batch (values in the thousands), KL warm-up
import torch, torch.nn as nn, torch.nn.functional as F
from sklearn.datasets import load_digits
torch.manual_seed(0)
X = torch.tensor(load_digits().data / 16., dtype=torch.float32); X = X[torch.randperm(len(X))]; tr, va = X[:1500], X[1500:]
enc = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16)); dec = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 64))
params = list(enc.parameters()) + list(dec.parameters()); opt = torch.optim.Adam(params, 2e-3)
def elbo(x, beta):
    mu, lv = enc(x).chunk(2, 1); z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
    rec = F.binary_cross_entropy_with_logits(dec(z), x, reduction="sum"); kl = -0.5 * (1 + lv - mu ** 2 - lv.exp()).sum()
    return rec + beta * kl, rec, kl
for ep in range(1, 41):
    beta = min(1.0, ep / 15)
    for b in tr[torch.randperm(1500)].split(100):
        loss, _, _ = elbo(b, beta); opt.zero_grad(); loss.backward(); opt.step()
    if ep % 4 == 0:
        with torch.no_grad():
            l, r, k = elbo(va, 1.0); mu = enc(va)[:, :8]; mse = (dec(mu).sigmoid() - va).pow(2).mean(); ref = (va - tr.mean(0)).pow(2).mean()
        print(f"epoch {ep} beta {beta:.2f} train batch loss {loss.item():.0f} val -ELBO/img {l.item()/len(va):.2f} KL {k.item()/len(va):.2f} recon mse {mse:.4f} (mean image {ref:.4f})")
