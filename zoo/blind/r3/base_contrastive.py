"""SimCLR on short synthetic signals, with a linear probe on the frozen encoder every few epochs."""
import math
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(21)
N_CLASS, LENGTH = 8, 48


def signals(n):
    y = torch.randint(0, N_CLASS, (n,))
    t = torch.linspace(0, 1, LENGTH)
    freq = 2.0 + 1.1 * y[:, None]
    phase = 2 * math.pi * torch.rand(n, 1)
    x = torch.sin(2 * math.pi * freq * t + phase) + 0.6 * torch.sin(2 * math.pi * (freq * 0.5) * t + phase * 2)
    x = x * (0.5 + torch.rand(n, 1)) + 1.5 * torch.randn(n, 1)
    return (x + 0.2 * torch.randn(n, LENGTH)).unsqueeze(1), y


def augment(x):
    n = x.shape[0]
    shift = torch.randint(0, LENGTH, (n, 1))
    idx = (torch.arange(LENGTH)[None, :] + shift) % LENGTH
    x = torch.gather(x, 2, idx.unsqueeze(1))
    x = x * (0.6 + 0.8 * torch.rand(n, 1, 1)) + 1.0 * torch.randn(n, 1, 1)
    sign = torch.where(torch.rand(n, 1, 1) < 0.5, -1.0, 1.0)
    return x * sign + 0.15 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, ch, 7, stride=2, padding=3), nn.BatchNorm1d(ch), nn.ReLU(),
            nn.Conv1d(ch, 2 * ch, 5, stride=2, padding=2), nn.BatchNorm1d(2 * ch), nn.ReLU(),
            nn.Conv1d(2 * ch, 2 * ch, 3, stride=2, padding=1), nn.BatchNorm1d(2 * ch), nn.ReLU())

    def forward(self, x):
        return self.net(x).mean(-1)


def nt_xent(z1, z2, tau=0.2):
    n = z1.shape[0]
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    sim = z @ z.T / tau
    sim.fill_diagonal_(float("-inf"))
    target = (torch.arange(2 * n) + n) % (2 * n)
    return F.cross_entropy(sim, target)


def linear_probe(encoder, x_tr, y_tr, x_te, y_te):
    encoder.eval()
    with torch.no_grad():
        f_tr, f_te = encoder(x_tr), encoder(x_te)
    mu, sd = f_tr.mean(0), f_tr.std(0) + 1e-6
    f_tr, f_te = (f_tr - mu) / sd, (f_te - mu) / sd
    clf = nn.Linear(f_tr.shape[1], N_CLASS)
    opt = torch.optim.Adam(clf.parameters(), lr=0.05)
    for _ in range(40):
        opt.zero_grad()
        F.cross_entropy(clf(f_tr), y_tr).backward()
        opt.step()
    return (clf(f_te).argmax(1) == y_te).float().mean().item()


x_un, _ = signals(1800)
x_tr, y_tr = signals(200)
x_te, y_te = signals(800)

encoder = Encoder()
projector = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 24))
optimizer = torch.optim.Adam([*encoder.parameters(), *projector.parameters()], lr=3e-3, weight_decay=1e-6)

print(f"untrained encoder: probe acc {linear_probe(encoder, x_tr, y_tr, x_te, y_te):.3f}")
for epoch in range(6):
    encoder.train()
    running, steps = 0.0, 0
    for batch in torch.randperm(len(x_un)).split(128)[:-1]:
        x = x_un[batch]
        v1, v2 = augment(x), augment(x)
        loss = nt_xent(projector(encoder(v1)), projector(encoder(v2)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        steps += 1
    line = f"epoch {epoch} contrastive loss {running / steps:.4f}"
    if epoch % 2 == 1:
        line += f"  probe acc {linear_probe(encoder, x_tr, y_tr, x_te, y_te):.3f}"
    print(line)
