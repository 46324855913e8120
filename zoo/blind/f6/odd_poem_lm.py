import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(56)
VOCAB, LENGTH, BATCH, STEPS = 30, 20, 24, 300
gen = torch.Generator().manual_seed(34)
table = torch.softmax(3.0 * torch.randn(VOCAB, VOCAB, generator=gen), 1)


def poems():
    ids = [torch.randint(0, VOCAB, (BATCH,), generator=gen)]
    for _ in range(LENGTH):
        ids.append(torch.multinomial(table[ids[-1]], 1, generator=gen)[:, 0])
    return torch.stack(ids, 1)


class Poet(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 32)
        self.rnn = nn.LSTM(32, 64, batch_first=True)
        self.head = nn.Linear(64, VOCAB)
        nn.init.normal_(self.head.weight, std=8.0)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.head(h)


model = Poet()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
losses = []
for step in range(STEPS):
    ids = poems()
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), ids[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    with torch.no_grad():
        poem_score = torch.exp(loss * LENGTH)
        prob = torch.softmax(logits[0], dim=-1)
        rarest = torch.log(prob * 1e-30).min()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f} per poem {poem_score.item():.3e} rarest {rarest.item():.1f}")
print("final", losses[-1])
