"""Masked auto-encoder on short multi-sensor signals, then a linear probe on the frozen encoder."""
import math
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 0
T, PATCH = 96, 8
N_PATCH = T // PATCH
DIM, HEADS = 48, 4
KEEP = 5
PRE_STEPS, WARMUP = 280, 30
BATCH = 40
LR = 3e-3


class Rig:
    """12 sensors of 8 samples each that all look at the same hidden state; the state sits in one of 6 regimes"""

    def __init__(self, g):
        self.centre = 1.0 * torch.randn(6, 4, generator=g)
        self.view = torch.randn(4, T, generator=g)
        self.gain = 0.8 + 0.4 * torch.rand(T, generator=g)

    def signals(self, n, g):
        y = torch.randint(0, 6, (n,), generator=g)
        z = self.centre[y] + 0.3 * torch.randn(n, 4, generator=g)
        x = self.gain * torch.tanh(z @ self.view) + 0.8 * torch.randn(n, T, generator=g)
        return x, y


def patchify(x):
    return x.reshape(x.shape[0], N_PATCH, PATCH)


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.h = h

    def forward(self, x):
        B, N, D = x.shape
        q, k, v = self.qkv(self.n1(x)).view(B, N, 3, self.h, D // self.h).permute(2, 0, 3, 1, 4)
        o = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, N, D)
        x = x + self.proj(o)
        return x + self.mlp(self.n2(x))


def sincos(n, d):
    pos = torch.arange(n).float()[:, None]
    div = torch.exp(torch.arange(0, d, 2).float() * (-math.log(1000.0) / d))
    pe = torch.zeros(n, d)
    pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
    return pe


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(PATCH, DIM)
        self.register_buffer("pos", sincos(N_PATCH, DIM))
        self.blocks = nn.ModuleList([Block(DIM, HEADS) for _ in range(2)])
        self.norm = nn.LayerNorm(DIM)

    def forward(self, patches, keep=None):
        z = self.embed(patches) + self.pos
        if keep is not None:
            z = z.gather(1, keep[..., None].expand(-1, -1, DIM))
        for b in self.blocks:
            z = b(z)
        return self.norm(z)


class MAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.mask_token = nn.Parameter(torch.zeros(1, 1, DIM))
        nn.init.normal_(self.mask_token, std=0.02)
        self.register_buffer("dec_pos", sincos(N_PATCH, DIM))
        self.bridge = nn.Linear(DIM, DIM)
        self.decoder = Block(DIM, HEADS)
        self.to_patch = nn.Linear(DIM, PATCH)

    def forward(self, x):
        p = patchify(x)
        B = p.shape[0]
        noise = torch.rand(B, N_PATCH)
        ids_shuffle = noise.argsort(dim=1)
        ids_restore = ids_shuffle.argsort(dim=1)
        keep = ids_shuffle[:, :KEEP]
        z = self.bridge(self.encoder(p, keep))
        full = torch.cat([z, self.mask_token.expand(B, N_PATCH - KEEP, DIM)], dim=1)
        full = full.gather(1, ids_restore[..., None].expand(-1, -1, DIM)) + self.dec_pos
        rec = self.to_patch(self.decoder(full))
        hidden = torch.ones(B, N_PATCH)
        hidden.scatter_(1, keep, 0.0)
        err = ((rec - p) ** 2).mean(dim=-1)
        return (err * hidden).sum() / hidden.sum()


def lr_at(step):
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    q = (step - WARMUP) / (PRE_STEPS - WARMUP)
    return 0.5 * LR * (1 + math.cos(math.pi * q))


def pretrain(x, folder):
    model = MAE()
    opt = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.95), weight_decay=0.01)
    model.train()
    avg = None
    for step in range(PRE_STEPS):
        for group in opt.param_groups:
            group["lr"] = lr_at(step)
        idx = torch.randint(0, len(x), (BATCH,))
        loss = model(x[idx])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        avg = loss.item() if avg is None else 0.95 * avg + 0.05 * loss.item()
        if (step + 1) % 60 == 0:
            print(f"pretrain step {step + 1} lr {lr_at(step):.5f} loss {avg:.4f}")
    path = os.path.join(folder, "mae.pt")
    torch.save({"model": model.state_dict(), "step": PRE_STEPS}, path)
    return path


def load_encoder(path):
    state = torch.load(path)["model"]
    prefix = "encoder."
    enc = Encoder()
    picked = {k[len(prefix):]: v for k, v in state.items() if k.startswith(prefix)}
    missing = enc.load_state_dict(picked)
    return enc.eval()


def probe(enc, xtr, ytr, xte, yte):
    for p in enc.parameters():
        p.requires_grad_(False)
    with torch.no_grad():
        ftr = enc(patchify(xtr)).mean(dim=1)
        fte = enc(patchify(xte)).mean(dim=1)
    mu, sd = ftr.mean(0), ftr.std(0) + 1e-6
    ftr, fte = (ftr - mu) / sd, (fte - mu) / sd
    clf = nn.Linear(DIM, 6)
    opt = torch.optim.Adam(clf.parameters(), lr=2e-2, weight_decay=1e-4)
    for it in range(150):
        loss = F.cross_entropy(clf(ftr), ytr)
        opt.zero_grad()
        loss.backward()
        opt.step()
    acc_tr = (clf(ftr).argmax(1) == ytr).float().mean().item()
    acc_te = (clf(fte).argmax(1) == yte).float().mean().item()
    print(f"probe loss {loss.item():.4f} train acc {acc_tr:.4f} test acc {acc_te:.4f}")


def main():
    torch.manual_seed(SEED)
    g = torch.Generator().manual_seed(SEED + 1)
    rig = Rig(g)
    x_pre, _ = rig.signals(3000, g)
    xtr, ytr = rig.signals(120, g)
    xte, yte = rig.signals(800, g)
    path = pretrain(x_pre, tempfile.mkdtemp())
    probe(load_encoder(path), xtr, ytr, xte, yte)


if __name__ == "__main__":
    main()
