import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader


class Tickets(Dataset):
    """Token sequences of support tickets and the queue they were routed to."""

    def __init__(self, n=1200, vocab=150, classes=5, seed=1):
        g = torch.Generator().manual_seed(seed)
        self.docs, self.queue = [], []
        for i in range(n):
            c = int(torch.randint(0, classes, (1,), generator=g))
            m = int(torch.randint(3, 20, (1,), generator=g))
            if i in (377, 902):
                m = 0
            common = torch.randint(1, vocab, (m,), generator=g)
            topical = 1 + c * 25 + torch.randint(0, 25, (m,), generator=g)
            pick = torch.rand(m, generator=g) < 0.35
            self.docs.append(torch.where(pick, topical, common))
            self.queue.append(c)

    def __len__(self):
        return len(self.docs)

    def __getitem__(self, i):
        return self.docs[i], self.queue[i]


def collate(items):
    docs, queue = zip(*items)
    ids = nn.utils.rnn.pad_sequence(docs, batch_first=True)
    return ids, torch.tensor(queue)


class AttentionPool(nn.Module):
    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.key = nn.Linear(dim, dim)
        self.query = nn.Parameter(torch.randn(dim) / dim ** 0.5)
        self.cls = nn.Linear(dim, classes)

    def forward(self, ids):
        e = self.emb(ids)
        score = torch.tanh(self.key(e)) @ self.query
        score = score.masked_fill(ids == 0, float("-inf"))
        weight = torch.softmax(score, dim=-1)
        return self.cls((weight.unsqueeze(-1) * e).sum(1))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Tickets(), batch_size=16, shuffle=True, collate_fn=collate,
                        generator=torch.Generator().manual_seed(12))
    model = AttentionPool(150, 32, 5)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    crit = nn.CrossEntropyLoss()
    seen, step = 0.0, 0
    for epoch in range(3):
        for ids, queue in loader:
            loss = crit(model(ids), queue)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 15 == 0:
                print(f"epoch {epoch} iter {step} loss {loss.item():.4f}")


main()
