"""Variational Bayesian linear regression with fixed random features: the ELBO is maximised."""
import math
import torch

torch.manual_seed(10)
torch.set_num_threads(1)
N, M = 600, 60
x = torch.rand(N, 1) * 6 - 3
f = lambda t: torch.sin(2 * t[:, 0]) + 0.3 * t[:, 0]
y = f(x) + 0.2 * torch.randn(N)
om, ph = torch.randn(1, M) * 1.5, torch.rand(M) * 2 * math.pi
feat = lambda t: math.sqrt(2 / M) * torch.cos(t @ om + ph)
A = feat(x)
mu = torch.zeros(M, requires_grad=True)
ls = torch.full((M,), -2.0, requires_grad=True)
ln = torch.zeros((), requires_grad=True)
opt = torch.optim.Adam([mu, ls, ln], lr=0.02, maximize=True)
xt = torch.linspace(-3, 3, 300)[:, None]
for it in range(1, 2001):
    w = mu + ls.exp() * torch.randn(M)
    i = torch.randint(0, N, (100,))
    lik = torch.distributions.Normal(A[i] @ w, ln.exp()).log_prob(y[i]).mean() * N
    kl = (0.5 * (mu ** 2 + (2 * ls).exp()) / 4 - ls + math.log(2) - 0.5).sum()
    elbo = lik - kl
    opt.zero_grad()
    elbo.backward()
    opt.step()
    if it == 1 or it % 250 == 0:
        rm = (feat(xt) @ mu.detach() - f(xt)).pow(2).mean().sqrt().item()
        print(f"it {it:4d}  ELBO {elbo.item():9.1f}  noise {ln.exp().item():.3f}  rmse to the true curve {rm:.4f}")
print(f"final rmse to the true curve {rm:.4f}, noise {ln.exp().item():.3f} (true 0.2)")
