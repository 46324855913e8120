"""Pairwise learning to rank with a fused logistic loss."""
import torch
import torch.nn as nn


class LogisticPair(torch.autograd.Function):
    """log(1 + exp(x)) with a hand-written backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        e = torch.exp(x)
        return grad * e / (1 + e)


class QueryStream:
    """Per query: documents with text match, freshness, links and size (kB) features."""

    def __init__(self, docs=12, feats=10, seed=0):
        self.g = torch.Generator().manual_seed(seed)
        self.w = torch.randn(feats, generator=self.g)
        self.docs, self.feats, self.count = docs, feats, 0

    def batch(self, queries):
        x = torch.randn(queries, self.docs, self.feats, generator=self.g)
        score = x @ self.w + 0.3 * (x[..., 0] * x[..., 1])
        rel = torch.bucketize(score, torch.tensor([-1.0, 1.0, 3.0])).float()
        in_bytes = torch.rand(queries, self.docs, generator=self.g) < 2.5e-5
        x[..., -1] = torch.where(in_bytes, x[..., -1] * 1024, x[..., -1])
        return x, rel


class Scorer(nn.Module):
    def __init__(self, feats):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(feats, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.f(x).squeeze(-1)


def pair_loss(score, rel):
    ds = score.unsqueeze(2) - score.unsqueeze(1)
    better = (rel.unsqueeze(2) > rel.unsqueeze(1)).float()
    return (LogisticPair.apply(-ds) * better).sum() / better.sum().clamp(min=1)


def main(steps=400, queries=16):
    torch.manual_seed(0)
    stream = QueryStream(seed=6)
    net = Scorer(stream.feats).cuda()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(steps):
        x, rel = stream.batch(queries)
        x, rel = x.cuda(), rel.cuda()
        loss = pair_loss(net(x), rel)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        if step % 25 == 0:
            print(f"step {step:4d} pair loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
