"""Fine-tune a small GRU LM on question/answer pairs; only answer tokens count in the loss."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
V, L, MICRO, ACCUM = 30, 12, 4, 2


def make_dialogs(n):
    g = torch.Generator().manual_seed(14)
    ids = torch.zeros(n, L, dtype=torch.long)
    labels = torch.full((n, L), -100)
    for i in range(n):
        q = int(torch.randint(3, 7, (1,), generator=g))
        if i in range(800, 804):
            q = L
        start = int(torch.randint(1, 20, (1,), generator=g))
        ids[i] = (start + torch.arange(L)) % V
        labels[i, q:] = ids[i, q:]
    return ids, labels


class LM(nn.Module):
    def __init__(self, h=48):
        super().__init__()
        self.emb = nn.Embedding(V, h)
        self.gru = nn.GRU(h, h, batch_first=True)
        self.head = nn.Linear(h, V)

    def forward(self, ids):
        return self.head(self.gru(self.emb(ids))[0])


ids, labels = make_dialogs(1280)
lm = LM()
opt = torch.optim.AdamW(lm.parameters(), lr=2e-3)
micro_batches = range(0, len(ids), MICRO)
total = 0.0
for k, start in enumerate(micro_batches):
    x, y = ids[start:start + MICRO], labels[start:start + MICRO]
    logits = lm(x)[:, :-1]
    answer = y[:, 1:] != -100
    logp = F.log_softmax(logits, dim=-1)
    nll = -logp.gather(2, y[:, 1:].clamp(min=0)[..., None]).squeeze(2)
    loss = (nll * answer).sum() / answer.sum()
    (loss / ACCUM).backward()
    total += loss.item() / ACCUM
    if (k + 1) % ACCUM == 0:
        torch.nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        if ((k + 1) // ACCUM) % 20 == 0:
            print(f"update {(k + 1) // ACCUM} loss {total:.4f}")
        total = 0.0
