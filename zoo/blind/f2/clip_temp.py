import torch
import torch.nn as nn
import torch.nn.functional as F


class DualEncoder(nn.Module):
    def __init__(self, d_img=30, d_txt=20, d=24):
        super().__init__()
        self.img = nn.Sequential(nn.Linear(d_img, 64), nn.ReLU(), nn.Linear(64, d))
        self.txt = nn.Sequential(nn.Linear(d_txt, 64), nn.ReLU(), nn.Linear(64, d))
        self.logit_scale = nn.Parameter(torch.tensor(0.5))

    def forward(self, a, b):
        a = self.img(a)
        b = self.txt(b)
        return self.logit_scale.exp() * a @ b.t()


def info_nce(sim):
    e = torch.exp(sim)
    pos = sim.diagonal()
    return (torch.log(e.sum(1)) - pos).mean() + (torch.log(e.sum(0)) - pos).mean()


def pairs(n, g):
    A, B = torch.randn(10, 30, generator=g), torch.randn(10, 20, generator=g)
    z = torch.randn(n, 10, generator=g)
    return z @ A + 0.02 * torch.randn(n, 30, generator=g), z @ B + 0.02 * torch.randn(n, 20, generator=g)


def main():
    torch.manual_seed(10)
    g = torch.Generator().manual_seed(10)
    img, txt = pairs(192, g)
    model = DualEncoder()
    opt = torch.optim.AdamW([
        {"params": list(model.img.parameters()) + list(model.txt.parameters()), "lr": 2e-3},
        {"params": [model.logit_scale], "lr": 5e-2},
    ])
    for step in range(400):
        i = torch.randperm(192, generator=g)[:24]
        sim = model(img[i], txt[i])
        loss = 0.5 * info_nce(sim)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.4f} scale {model.logit_scale.exp().item():.2f}")


main()
