"""Two layer net with hand written gradients and momentum, no autograd, no optimizer."""
import torch

torch.manual_seed(6)
torch.set_grad_enabled(False)
X = torch.randn(6000, 12)
T = torch.sin(X[:, :3].sum(1, keepdim=True)) + 0.5 * X[:, 3:4] * X[:, 4:5]
Xt, Tt, Xv, Tv = X[:5000], T[:5000], X[5000:], T[5000:]
H = 256
P = {"W1": torch.randn(12, H) * (2 / 12) ** 0.5, "b1": torch.zeros(H), "W2": torch.randn(H, 1) * 0.5 * (1 / H) ** 0.5, "b2": torch.zeros(1)}
V = {k: torch.zeros_like(v) for k, v in P.items()}


def forward(x):
    a = x @ P["W1"] + P["b1"]
    h = a.clamp_min(0)
    return a, h, h @ P["W2"] + P["b2"]


lr = 0.004
for epoch in range(90):
    perm = torch.randperm(5000)
    tot = 0.0
    for i in range(0, 5000, 50):
        x, t = Xt[perm[i:i + 50]], Tt[perm[i:i + 50]]
        a, h, y = forward(x)
        e = y - t
        tot += (e ** 2).sum().item()
        dy = 2 * e / len(x)
        dh = dy @ P["W2"].T * (a > 0)
        G = {"W2": h.T @ dy, "b2": dy.sum(0), "W1": x.T @ dh, "b1": dh.sum(0)}
        for k in P:
            V[k].mul_(0.9).add_(G[k])
            P[k].sub_(lr * V[k])
    lr *= 0.97
    if epoch % 5 == 4:
        v = ((forward(Xv)[2] - Tv) ** 2).mean().item()
        print(f"epoch {epoch + 1} train mse {tot / 5000:.4f} val mse {v:.4f} (var {Tv.var().item():.3f})")
