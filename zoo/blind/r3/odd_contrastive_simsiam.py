"""SimSiam: no negatives, stop-gradient and predictor; the loss is a negative cosine and goes towards -1."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
C, DIM = 6, 32
centre = torch.randn(C, DIM)
nuis = torch.linalg.qr(torch.randn(DIM, 10))[0]


def draw(n):
    y = torch.randint(0, C, (n,))
    return centre[y] + 0.5 * torch.randn(n, DIM) + 4.0 * torch.randn(n, 10) @ nuis.T, y


def aug(x):
    return x + 4.0 * torch.randn(len(x), 10) @ nuis.T + 0.2 * torch.randn_like(x)


enc = nn.Sequential(nn.Linear(DIM, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.BatchNorm1d(32, affine=False))
pred = nn.Sequential(nn.Linear(32, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 32))
opt = torch.optim.SGD([{"params": enc.parameters()}, {"params": pred.parameters(), "lr": 0.1}], lr=0.1, momentum=0.9, weight_decay=1e-4)
x_all, _ = draw(2500)
a_x, a_y = draw(300)
b_x, b_y = draw(800)


def knn():
    enc.eval()
    with torch.no_grad():
        a, b = F.normalize(enc(a_x), dim=1), F.normalize(enc(b_x), dim=1)
    enc.train()
    vote = F.one_hot(a_y[(b @ a.T).topk(11, 1).indices], C).sum(1).argmax(1)
    return (vote == b_y).float().mean().item()


print(f"before: knn {knn():.3f}")
for ep in range(14):
    for b in torch.randperm(2500).split(125):
        z1, z2 = enc(aug(x_all[b])), enc(aug(x_all[b]))
        loss = -0.5 * (F.cosine_similarity(pred(z1), z2.detach()).mean() + F.cosine_similarity(pred(z2), z1.detach()).mean())
        opt.zero_grad()
        loss.backward()
        opt.step()
    if ep % 2 == 1:
        spread = F.normalize(z1.detach(), dim=1).std(0).mean().item()
        print(f"epoch {ep:2d} loss {loss.item():.4f} spread {spread:.3f} (1/sqrt(d) = {32 ** -0.5:.3f}) knn {knn():.3f}")
