import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
N_CLASS, PER = 400, 16
protos = torch.randn(40, 1, 12, 12)
patches, labels = [], []
for c in range(N_CLASS):
    base = protos[c % 40] + 0.5 * torch.randn(1, 12, 12)
    patches.append(base + 0.4 * torch.randn(PER, 1, 12, 12))
    labels.append(torch.full((PER,), c))
patches, labels = torch.cat(patches), torch.cat(labels)
patches[3528:3536] = patches[3520:3528]

net = nn.Sequential(
    nn.Conv2d(1, 12, 3, stride=2), nn.ReLU(),
    nn.Conv2d(12, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 9, 24))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)


def contrastive(emb, y, margin=2.0):
    sq = (emb * emb).sum(1)
    d2 = sq[:, None] + sq[None, :] - 2.0 * emb @ emb.t()
    same = (y[:, None] == y[None, :]).triu(1)
    diff = (y[:, None] != y[None, :]).triu(1)
    d_pos = d2[same].sqrt()
    neg = F.relu(margin ** 2 - d2[diff])
    return d_pos.mean() + neg.mean()


step = 0
for start in range(0, len(patches), 64):      # four identities at a time
    xb, yb = patches[start:start + 64], labels[start:start + 64]
    loss = contrastive(net(xb), yb)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        print("step", step, "loss", round(loss.item(), 5))
    step += 1
