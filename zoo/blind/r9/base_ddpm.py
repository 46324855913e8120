# Class-conditional DDPM on 2-D point clouds. Quality: sliced Wasserstein distance per class, and how often
# a nearest-neighbour classifier trained on real points agrees with the class that was asked for.
import math, time
import numpy as np
import torch
from torch import nn
from sklearn.neighbors import KNeighborsClassifier

torch.set_num_threads(1)
torch.manual_seed(0)
rng = np.random.default_rng(0)

NAMES = ["ring", "moon", "spiral", "blobs"]
T = 50
BATCH, STEPS, LR = 256, 1600, 3e-3
EMA_DECAY = 0.99


def make_class(c, n):
    if c == 0:
        a = rng.uniform(0, 2 * np.pi, n)
        p = np.stack([np.cos(a), np.sin(a)], 1) * 1.5 + [-2.2, 2.0]
    elif c == 1:
        a = rng.uniform(0, np.pi, n)
        p = np.stack([np.cos(a) * 1.8, np.sin(a) * 1.8], 1) + [2.2, 1.2]
    elif c == 2:
        a = np.sqrt(rng.uniform(0.05, 1, n)) * 3 * np.pi
        p = np.stack([a * np.cos(a), a * np.sin(a)], 1) / 5.0 + [-2.0, -2.2]
    else:
        k = rng.integers(0, 4, n)
        p = np.array([[1.2, -1.2], [3.2, -1.2], [1.2, -3.2], [3.2, -3.2]])[k]
    return (p + rng.normal(0, 0.08, (n, 2))).astype(np.float32)


def make_set(n_per_class):
    x = np.concatenate([make_class(c, n_per_class) for c in range(4)])
    y = np.repeat(np.arange(4), n_per_class)
    return x, y


x_train, y_train = make_set(3000)
x_test, y_test = make_set(250)
mean, std = x_train.mean(0), x_train.std(0)
order = rng.permutation(len(x_train))
X = torch.from_numpy((x_train[order] - mean) / std)
Y = torch.from_numpy(y_train[order])

betas = torch.linspace(2e-3, 0.2, T)
alphas = 1 - betas
abar = torch.cumprod(alphas, 0)
abar_prev = torch.cat([torch.ones(1), abar[:-1]])
post_var = betas * (1 - abar_prev) / (1 - abar)


class Denoiser(nn.Module):
    def __init__(self, width=96, emb=64):
        super().__init__()
        self.emb = emb
        self.cls = nn.Embedding(4, emb)
        self.time = nn.Sequential(nn.Linear(emb, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.inp = nn.Linear(2, width)
        self.cond = nn.ModuleList([nn.Linear(emb, width) for _ in range(3)])
        self.mid = nn.ModuleList([nn.Linear(width, width) for _ in range(3)])
        self.out = nn.Linear(width, 2)

    def t_embed(self, t):
        f = torch.exp(-math.log(1000.0) * torch.arange(self.emb // 2) / (self.emb // 2))
        a = t[:, None].float() * f[None]
        return torch.cat([a.sin(), a.cos()], 1)

    def forward(self, x, t, y):
        e = self.time(self.t_embed(t)) + self.cls(y)
        h = self.inp(x)
        for c, m in zip(self.cond, self.mid):
            h = h + m(nn.functional.silu(h + c(e)))
        return self.out(nn.functional.silu(h))


@torch.no_grad()
def generate(net, y):
    x = torch.randn(len(y), 2)
    for i in reversed(range(T)):
        t = torch.full((len(y),), i)
        eps = net(x, t, y)
        x = (x - betas[i] / (1 - abar[i]).sqrt() * eps) / alphas[i].sqrt()
        if i > 0:
            x = x + post_var[i].sqrt() * torch.randn_like(x)
    return x.numpy() * std + mean


def sliced_w(a, b, n_proj=64):
    d = np.random.default_rng(5).normal(size=(2, n_proj))
    d /= np.linalg.norm(d, axis=0)
    return np.abs(np.sort(a @ d, 0) - np.sort(b @ d, 0)).mean()


knn = KNeighborsClassifier(5).fit(x_train, y_train)


def report(net):
    g = generate(net, torch.from_numpy(y_test))
    per = [sliced_w(g[y_test == c], x_test[y_test == c]) for c in range(4)]
    return sliced_w(g, x_test), per, (knn.predict(g) == y_test).mean()


net, ema = Denoiser(), Denoiser()
ema.load_state_dict(net.state_dict())
opt = torch.optim.AdamW(net.parameters(), lr=LR, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=STEPS, eta_min=1e-5)
t0, acc = time.time(), []
for step in range(1, STEPS + 1):
    i = torch.randint(0, len(X), (BATCH,))
    x0, y = X[i], Y[i]
    t = torch.randint(0, T, (BATCH,))
    noise = torch.randn_like(x0)
    s = abar[t][:, None]
    xt = s.sqrt() * x0 + (1 - s).sqrt() * noise
    loss = ((net(xt, t, y) - noise) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    with torch.no_grad():
        for p, q in zip(ema.parameters(), net.parameters()):
            p.mul_(EMA_DECAY).add_(q, alpha=1 - EMA_DECAY)
    acc.append(loss.item())
    if step % 200 == 0:
        swd, per, agree = report(ema)
        print(f"{step:5d} | loss {np.mean(acc[-200:]):.4f} | SWD all {swd:.3f} | "
              + " ".join(f"{n} {v:.3f}" for n, v in zip(NAMES, per)) + f" | class agreement {agree:.3f}")
print(f"done in {time.time() - t0:.0f}s")
