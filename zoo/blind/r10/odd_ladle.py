"""Low-rank adapters on a frozen, pretrained body: most parameters have no gradient, adapters start at zero."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(1)
dim, width = 40, 192
proj = torch.randn(dim, 12) / dim ** 0.5


def latent(x):
    return torch.tanh(2.5 * (x @ proj))


g = torch.Generator().manual_seed(3)
w_src = torch.randn(12, 12, 8, generator=g)
w_tgt = w_src[:, :, :5] + 0.35 * torch.randn(12, 12, 5, generator=g)


def sample(n, w):
    x = torch.randn(n, dim, generator=g)
    z = latent(x)
    return x, torch.einsum("ni,ijk,nj->nk", z, w, z).argmax(1)


class LoRALinear(nn.Module):
    def __init__(self, base, rank=6, scale=2.0):
        super().__init__()
        self.base, self.scale = base, scale
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.scale * self.up(self.down(x))


def make(n_out):
    return nn.Sequential(nn.Linear(dim, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, n_out))


@torch.no_grad()
def accuracy(model, x, y):
    return (model(x).argmax(1) == y).float().mean().item()


def fit(model, x, y, xt, yt, epochs, lr, name):
    params = [p for p in model.parameters() if p.requires_grad]
    total = sum(p.numel() for p in model.parameters())
    print(f"{name}: {sum(p.numel() for p in params)} of {total} parameters are trained")
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, lr, total_steps=epochs * (-(-len(x) // 128)))
    for e in range(epochs):
        run = 0.0
        for idx in torch.randperm(len(x)).split(128):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            run += loss.item() * len(idx)
        if (e + 1) % max(1, epochs // 5) == 0:
            print(f"  epoch {e + 1:3d}  train loss {run / len(x):.4f}  test acc {accuracy(model, xt, yt):.3f}")


xs, ys = sample(12000, w_src)
xst, yst = sample(2000, w_src)
body = make(8)
fit(body, xs, ys, xst, yst, 15, 3e-3, "pretraining")

xt, yt = sample(1200, w_tgt)
xtt, ytt = sample(2000, w_tgt)
scratch = make(5)
fit(scratch, xt, yt, xtt, ytt, 25, 3e-3, "from scratch on the small task")

for p in body.parameters():
    p.requires_grad_(False)
frozen = [p.clone() for p in body[:4].parameters()]
body[0], body[2] = LoRALinear(body[0]), LoRALinear(body[2])
body[4] = nn.Linear(width, 5)
fit(body, xt, yt, xtt, ytt, 25, 3e-3, "adapters")
now = [*body[0].base.parameters(), *body[2].base.parameters()]
print(f"body unchanged: {all(torch.equal(a, b) for a, b in zip(frozen, now))}  "
      f"test acc scratch {accuracy(scratch, xtt, ytt):.3f}  adapters {accuracy(body, xtt, ytt):.3f}")
