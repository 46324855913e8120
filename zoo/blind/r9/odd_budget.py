"""Character language model on text lines of very different length. Micro-batches are packed to a token budget, a step is made
when at least 3000 tokens have been collected; the sum of token losses is divided by the tokens of the whole step."""
import math

import torch
from torch import nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(6)
gen = torch.Generator().manual_seed(6)
V = 30
trans = torch.softmax(torch.randn(3, V, V, generator=gen) * 1.6, dim=-1)


def line():
    n = int(min(160, 6 + torch.empty(1).exponential_(1 / 22, generator=gen).item()))
    s = [0, int(torch.randint(1, V, (1,), generator=gen))]
    while len(s) < n:
        s.append(int(torch.multinomial(trans[s[-2] % 3, s[-1]], 1, generator=gen)))
    return torch.tensor(s)


lines = [line() for _ in range(4300)]
val_lines = lines[:300]
train_lines = lines[300:]
PAD = -1


def pack(rows, budget, shuffle):
    """Lists of lines whose padded size stays below the budget."""
    order = torch.randperm(len(rows), generator=gen).tolist() if shuffle else range(len(rows))
    batch, longest = [], 0
    for i in order:
        longest_new = max(longest, len(rows[i]))
        if batch and longest_new * (len(batch) + 1) > budget:
            yield torch.nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=PAD)
            batch, longest_new = [], len(rows[i])
        batch.append(rows[i])
        longest = longest_new
    yield torch.nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=PAD)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, 48)
        self.mix = nn.Linear(2 * 48, 160)
        self.out = nn.Linear(160, V)

    def forward(self, s):
        e = self.emb(s.clamp_min(0))
        before = F.pad(e, (0, 0, 1, 0))[:, :-1]
        return self.out(torch.relu(self.mix(torch.cat([e, before], dim=2))))


def token_loss(model, batch):
    target = batch[:, 1:]
    loss = F.cross_entropy(model(batch[:, :-1]).transpose(1, 2), target, ignore_index=PAD, reduction="sum")
    return loss, int((target != PAD).sum())


model = Model()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
steps = 0
for epoch in range(10):
    model.train()
    tokens, summed, micro, e_loss, e_tok = 0, 0.0, 0, 0.0, 0
    sizes = []
    for batch in pack(train_lines, 700, True):
        loss, n = token_loss(model, batch)
        loss.backward()
        tokens, summed, micro = tokens + n, summed + loss.item(), micro + 1
        if tokens >= 3000:
            for p in model.parameters():
                p.grad /= tokens
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            steps += 1
            sizes.append(micro)
            e_loss, e_tok = e_loss + summed, e_tok + tokens
            tokens, summed, micro = 0, 0.0, 0
    opt.zero_grad()
    model.eval()
    with torch.no_grad():
        parts = [token_loss(model, b) for b in pack(val_lines, 3000, False)]
    val = sum(l.item() for l, _ in parts) / sum(n for _, n in parts)
    print(f"epoch {epoch:2d} steps {steps:4d} micro-batches per step {min(sizes)}-{max(sizes)}  "
          f"train nll {e_loss / e_tok:.3f}  val nll {val:.3f} perplexity {math.exp(val):.2f}")
print(f"uniform model {math.log(V):.3f}")
