import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)

# 60 prototypes ("identities"); two noisy views of an identity form a positive pair
N_ID, DIM = 60, 32
proto = torch.randn(N_ID, DIM)
nuisance = torch.randn(6, DIM) * 1.6


def view(ids):
    style = torch.randn(len(ids), 6)
    return proto[ids] + style @ nuisance + 0.3 * torch.randn(len(ids), DIM)


class Encoder(nn.Module):
    def __init__(self, out=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


def info_nce(z1, z2, temperature=0.1):
    logits = z1 @ z2.t() / temperature
    labels = torch.arange(len(z1))
    return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels))


@torch.no_grad()
def retrieval(encoder):
    ids = torch.arange(N_ID)
    a, b = encoder(view(ids)), encoder(view(ids))
    return ((a @ b.t()).argmax(1) == ids).float().mean().item()


encoder = Encoder()
optim = torch.optim.Adam(encoder.parameters(), lr=3e-3)
avg = None
for it in range(1, 401):
    ids = torch.randperm(N_ID)[:40]
    z1, z2 = encoder(view(ids)), encoder(view(ids))
    loss = info_nce(z1, z2)
    optim.zero_grad()
    loss.backward()
    optim.step()
    avg = loss.item() if avg is None else 0.95 * avg + 0.05 * loss.item()
    if it % 80 == 0:
        print(f"it {it}  loss(avg) {avg:.3f}  top-1 retrieval {retrieval(encoder):.3f}")
