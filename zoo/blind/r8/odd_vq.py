"""VQ autoencoder: straight-through gradient, detached terms, codebook moved by averages and not by the optimizer; dead codes are set anew."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(23)
BASIS = torch.randn(3, 12, 20)


def data(n):
    pick = torch.randint(0, 12, (n, 3))
    return sum(BASIS[k, pick[:, k]] for k in range(3)) + 0.1 * torch.randn(n, 20)


x_tr, x_va = data(4000), data(800)
CODES, DIM, PARTS = 24, 6, 3
enc = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, PARTS * DIM))
dec = nn.Sequential(nn.Linear(PARTS * DIM, 128), nn.ReLU(), nn.Linear(128, 20))
book = torch.randn(CODES, DIM)                          # no Parameter on purpose
count, mass = torch.ones(CODES), book.clone()
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=2e-3)


def quantise(z):
    flat = z.view(-1, DIM)
    k = torch.cdist(flat, book).argmin(1)
    return flat, k, book[k].view_as(z)


for epoch in range(16):
    run = 0.0
    for idx in torch.randperm(len(x_tr)).split(100):
        z = enc(x_tr[idx])
        flat, k, zq = quantise(z)
        commit = F.mse_loss(z, zq.detach())
        out = dec(z + (zq - z).detach())
        rec = F.mse_loss(out, x_tr[idx])
        loss = rec + 0.25 * commit
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            one = F.one_hot(k, CODES).float()
            count.mul_(0.95).add_(one.sum(0), alpha=0.05)
            mass.mul_(0.95).add_(one.T @ flat, alpha=0.05)
            book.copy_(mass / count.clamp_min(1e-3)[:, None])
            dead = count < 0.5
            if dead.any():
                fresh = flat[torch.randint(0, len(flat), (int(dead.sum()),))]
                book[dead], mass[dead], count[dead] = fresh, fresh * 2, 2.0
        run += rec.item() / 40
    with torch.no_grad():
        _, k, zq = quantise(enc(x_va))
        val = F.mse_loss(dec(zq), x_va)
    if epoch % 2:
        print(f"epoch {epoch:2d} train rec {run:.4f} val rec {val:.4f} (variance {x_va.var():.3f}) codes in use {k.unique().numel()}/{CODES}")
