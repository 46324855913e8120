# Siamese network that verifies signatures; contrastive loss on pairs.
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(2)
gen = torch.Generator().manual_seed(2)

WRITERS, PER, DIM = 80, 20, 40
style = torch.randn(WRITERS, DIM, generator=gen)
sign = style[:, None] + 0.4 * torch.randn(WRITERS, PER, DIM, generator=gen)
# scans of the two branch offices
sign[37, 14] = sign[37, 5]
sign[61, 9] = sign[61, 2]


def genuine(n):
    w = torch.randint(0, WRITERS, (n,), generator=gen)
    i = torch.randint(0, PER, (n,), generator=gen)
    shift = torch.randint(1, PER, (n,), generator=gen)
    j = (i + shift) % PER
    return sign[w, i], sign[w, j]


def forged(n):
    w = torch.randint(0, WRITERS, (n,), generator=gen)
    v = (w + torch.randint(1, WRITERS, (n,), generator=gen)) % WRITERS
    i = torch.randint(0, PER, (n,), generator=gen)
    j = torch.randint(0, PER, (n,), generator=gen)
    return sign[w, i], sign[v, j]


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(DIM, 64), nn.LeakyReLU(0.1),
            nn.Linear(64, 64), nn.LeakyReLU(0.1),
            nn.Linear(64, 16),
        )

    def forward(self, x):
        return self.net(x)


def contrastive(za, zb, same, margin=2.0):
    d = (za - zb).pow(2).sum(1).sqrt()
    pos = same * d
    neg = (1 - same) * F.relu(margin - d)
    return (pos + neg).mean()


enc = Encoder()
opt = torch.optim.RMSprop(enc.parameters(), lr=5e-4)
label = torch.cat([torch.ones(32), torch.zeros(32)])
for step in range(600):
    ga, gb = genuine(32)
    fa, fb = forged(32)
    a = torch.cat([ga, fa])
    b = torch.cat([gb, fb])
    loss = contrastive(enc(a), enc(b), label)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 0:
        with torch.no_grad():
            dist = (enc(a) - enc(b)).norm(dim=1)
            gap = dist[32:].mean() - dist[:32].mean()
        print(f"step {step:3d} loss {loss.item():.4f} gap {gap.item():.3f}")
