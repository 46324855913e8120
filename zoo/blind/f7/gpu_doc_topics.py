"""Topic classification of documents from summed token vectors, mixed precision."""
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, TOPICS = 600, 6


def stream(steps, batch, seed):
    g = torch.Generator().manual_seed(seed)
    lean = torch.softmax(2.0 * torch.randn(TOPICS, VOCAB, generator=g), 1)
    for _ in range(steps):
        y = torch.randint(0, TOPICS, (batch,), generator=g)
        n = torch.empty(batch).log_normal_(3.4, 0.5, generator=g).long().clamp(5, 400)
        if torch.rand(1, generator=g).item() < 0.006:
            n[0] = 24000
        docs = [torch.multinomial(lean[k], int(m), replacement=True, generator=g) for k, m in zip(y, n)]
        yield torch.cat(docs), n, y


class DocNet(nn.Module):
    def __init__(self, dim=48, hidden=96):
        super().__init__()
        self.emb = nn.EmbeddingBag(VOCAB, dim, mode="sum")
        self.up = nn.Linear(2 * dim, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.out = nn.Linear(hidden, TOPICS)

    def forward(self, tokens, lengths):
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)[:-1]])
        h = self.emb(tokens, offsets)
        h = torch.cat([h, h * h / 10], 1)
        h = F.relu(self.up(h))
        h = self.mid(h)
        return self.out(F.relu(self.norm(h)))


def main(steps=400, batch=32):
    torch.manual_seed(0)
    net = DocNet().cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for step, (tokens, lengths, y) in enumerate(stream(steps, batch, seed=17)):
        tokens, lengths, y = tokens.cuda(), lengths.cuda(), y.cuda()
        with torch.autocast("cuda", dtype=torch.float16):
            logits = net(tokens, lengths)
            loss = F.cross_entropy(logits.float(), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        if step % 25 == 0:
            acc = (logits.argmax(1) == y).float().mean().item()
            print(f"step {step:4d} loss {loss.item():.4f} acc {acc:.3f} longest {int(lengths.max())}")


if __name__ == "__main__":
    main()
