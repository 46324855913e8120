import torch
import torch.nn as nn


class UnitLength(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        norm = x.norm(dim=1, keepdim=True)
        y = x / norm.clamp(min=1e-8)
        ctx.save_for_backward(y, norm)
        return y

    @staticmethod
    def backward(ctx, grad):
        y, norm = ctx.saved_tensors
        return (grad - y * (grad * y).sum(1, keepdim=True)) / norm


class DocModel(nn.Module):
    def __init__(self, vocab, k, classes):
        super().__init__()
        self.words = nn.Parameter(torch.randn(vocab, k) * 0.1)
        self.proto = nn.Parameter(torch.randn(classes, k) * 0.1)
        self.scale = nn.Parameter(torch.tensor(5.0))

    def forward(self, counts):
        doc = UnitLength.apply(counts @ self.words)
        cls = UnitLength.apply(self.proto)
        return self.scale * doc @ cls.T


def corpus(n=2560, vocab=120, classes=4):
    g = torch.Generator().manual_seed(6)
    topics = torch.rand(classes, vocab, generator=g) ** 4
    topics = topics / topics.sum(1, keepdim=True)
    labels = torch.randint(0, classes, (n,), generator=g)
    words = torch.multinomial(topics[labels], 12, replacement=True, generator=g)
    counts = torch.zeros(n, vocab).scatter_add_(1, words, torch.ones(n, 12))
    counts[1773] = 0
    return counts, labels


if __name__ == "__main__":
    torch.manual_seed(6)
    counts, labels = corpus()
    model = DocModel(120, 16, 4)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    B = 16
    for epoch in range(2):
        for start in range(0, len(counts), B):
            logits = model(counts[start:start + B])
            loss = nn.functional.cross_entropy(logits, labels[start:start + B])
            opt.zero_grad()
            loss.backward()
            opt.step()
            if start % (B * 20) == 0:
                print(f"epoch {epoch} doc {start} loss {loss.item():.4f}")
