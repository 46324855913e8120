"""One-box detector; box in pixels, task weights learned (log variances), so the total may go below zero."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
S = 24


def scenes(n):
    img = 0.2 * torch.randn(n, 1, S, S)
    wh = torch.randint(6, 13, (n, 2))
    xy = (torch.rand(n, 2) * (S - wh)).long()
    cls = torch.randint(0, 2, (n,))
    ar = torch.arange(S)
    for i in range(n):
        inx = (ar >= xy[i, 0]) & (ar < xy[i, 0] + wh[i, 0])
        iny = (ar >= xy[i, 1]) & (ar < xy[i, 1] + wh[i, 1])
        tex = 1.0 if cls[i] == 0 else ((ar[:, None] + ar[None]) % 2).float() * 2
        img[i, 0] += (iny[:, None] & inx[None]).float() * tex
    return img, cls, torch.cat([xy, xy + wh], 1).float()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 24, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(24 * 36, 64), nn.ReLU())
        self.cls, self.box = nn.Linear(64, 2), nn.Linear(64, 4)
        self.log_var = nn.Parameter(torch.zeros(2))
        with torch.no_grad():
            self.box.bias.copy_(torch.tensor([7.0, 7.0, 17.0, 17.0]))
            self.box.weight.mul_(4.0)

    def forward(self, x):
        h = self.body(x)
        return self.cls(h), self.box(h)


x, c, b = scenes(600)
xv, cv, bv = scenes(150)
net = Net()
opt = torch.optim.Adam([{"params": [p for n, p in net.named_parameters() if n != "log_var"]}, {"params": [net.log_var], "lr": 5e-3}], lr=2e-3)
for ep in range(14):
    tot = 0.0
    for idx in torch.randperm(len(x)).split(30):
        logit, box = net(x[idx])
        l_cls, l_box = F.cross_entropy(logit, c[idx]), F.l1_loss(box, b[idx])
        loss = torch.exp(-net.log_var[0]) * l_cls + torch.exp(-net.log_var[1]) * l_box + net.log_var.sum()
        opt.zero_grad(); loss.backward(); opt.step()
        tot += loss.item() * len(idx) / len(x)
    with torch.no_grad():
        logit, box = net(xv)
    if ep % 2:
        print(f"ep {ep + 1} total {tot:.3f} | val acc {(logit.argmax(1) == cv).float().mean():.3f} box error {F.l1_loss(box, bv):.2f} px")
