"""Attention pooling over bags of cell patches (multiple-instance learning)."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Slides:
    """Each slide is a bag of patch descriptors; patches with low tissue content are filtered out."""

    def __init__(self, n, dim=24, max_patches=20, seed=4):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, max_patches, dim, generator=g)
        self.y = (torch.rand(n, generator=g) < 0.5).float()
        tumour = torch.rand(n, max_patches, generator=g) < 0.25
        self.x[..., :4] += 2.0 * (tumour & (self.y[:, None] > 0)).unsqueeze(-1).float()
        quality = torch.rand(n, 1, generator=g).pow(0.35)
        tissue = torch.rand(n, max_patches, generator=g) * 0.5 + quality
        self.keep = tissue > 0.55

    def batches(self, size):
        for i in range(0, len(self.y), size):
            yield self.x[i:i + size], self.keep[i:i + size], self.y[i:i + size]


class BagNet(nn.Module):
    def __init__(self, dim, hidden=64):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.att = nn.Sequential(nn.Linear(hidden, 32), nn.Tanh(), nn.Linear(32, 1))
        self.head = nn.Linear(hidden, 1)

    def forward(self, x, keep):
        h = self.enc(x)
        score = self.att(h).squeeze(-1)
        score = score.masked_fill(~keep, float("-inf"))
        weight = torch.softmax(score, dim=1)
        pooled = torch.einsum("bn,bnh->bh", weight, h)
        return self.head(pooled).squeeze(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()
    torch.manual_seed(1)
    data = Slides(14400)
    net = BagNet(24)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr, weight_decay=1e-5)
    for step, (x, keep, y) in enumerate(data.batches(args.batch)):
        logit = net(x, keep)
        loss = F.binary_cross_entropy_with_logits(logit, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            acc = ((logit > 0).float() == y).float().mean()
            print(f"step {step} loss {loss.item():.4f} acc {acc.item():.3f} patches {keep.sum(1).float().mean().item():.1f}")


if __name__ == "__main__":
    main()
