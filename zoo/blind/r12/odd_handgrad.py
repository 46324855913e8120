# softmax MLP with backward pass written by hand; torch only as array library
import torch
from sklearn.datasets import load_digits
torch.manual_seed(0)
d = load_digits(); X = torch.tensor(d.data / 16.0, dtype=torch.float32); Y = torch.tensor(d.target)
p = torch.randperm(len(X)); X, Y = X[p], Y[p]; Xt, Yt, Xv, Yv = X[:1400], Y[:1400], X[1400:], Y[1400:]
W1, b1 = torch.randn(64, 96) * (2 / 64) ** .5, torch.zeros(96)
W2, b2 = torch.randn(96, 10) * (1 / 96) ** .5, torch.zeros(10)
params = [W1, b1, W2, b2]; vel = [torch.zeros_like(w) for w in params]
torch.set_grad_enabled(False)
for ep in range(60):
    perm = torch.randperm(1400); tot = 0.
    for i in range(0, 1400, 50):
        x, y = Xt[perm[i:i+50]], Yt[perm[i:i+50]]
        h = (x @ W1 + b1).clamp(min=0); z = h @ W2 + b2
        logp = z - z.logsumexp(1, keepdim=True)
        tot += -logp[torch.arange(50), y].sum().item()
        gz = logp.exp(); gz[torch.arange(50), y] -= 1; gz /= 50
        gh = gz @ W2.T * (h > 0)
        grads = [x.T @ gh, gh.sum(0), h.T @ gz, gz.sum(0)]
        for w, v, g in zip(params, vel, grads):
            v.mul_(0.9).add_(g); w.sub_(0.05 * v)
    if ep % 10 == 9:
        zv = (Xv @ W1 + b1).clamp(min=0) @ W2 + b2
        print(f"epoch {ep+1} train nll {tot/1400:.4f} val acc {(zv.argmax(1)==Yv).float().mean():.4f}")
