import numpy as np
import torch
import torch.nn as nn


def photos(n, mix, rng):
    tags = (rng.random((n, 8)) < 0.3).astype(np.float32)
    return (tags @ mix + rng.normal(0, 1.0, (n, 30))).astype(np.float32), tags


def percent(a):
    return 100.0 * float(a)


def main():
    rng = np.random.default_rng(23)
    torch.manual_seed(23)
    mix = rng.normal(0, 1, (8, 30))
    xt, yt = map(torch.from_numpy, photos(1500, mix, rng))
    xv, yv = map(torch.from_numpy, photos(400, mix, rng))
    net = nn.Sequential(nn.Linear(30, 48), nn.ReLU(), nn.Linear(48, 8))
    opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(8):
        tot = 0.0
        for b in torch.randperm(len(xt)).split(50):
            loss = bce(net(xt[b]), yt[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item() * len(b)
        with torch.no_grad():
            out = net(xv)
        hit = (out > 0).float()
        exact = (hit == yv).all(1).float().mean()
        f1 = 2 * (hit * yv).sum() / (hit.sum() + yv.sum())
        share = tot / len(xt) / 0.6931
        print(f"epoch {epoch} loss {percent(share):.1f}% of chance  val {percent(bce(out, yv) / 0.6931):.1f}%  "
              f"all tags right {percent(exact):.1f}%  F1 {percent(f1):.1f}%")


main()
