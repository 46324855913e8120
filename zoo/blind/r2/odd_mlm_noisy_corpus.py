"""Masked-token model on a noisy first-order Markov chain."""
import torch
import torch.nn as nn

torch.manual_seed(14)
V, L, MASK = 6, 6, 6
P = torch.full((V, V), 0.2 / V)
P[torch.arange(V), (torch.arange(V) + 2) % V] += 0.8


def chain(n):
    s = [torch.randint(0, V, (n,))]
    for _ in range(L - 1):
        s.append(torch.multinomial(P[s[-1]], 1).squeeze(1))
    return torch.stack(s, 1)


class Enc(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.tok = nn.Embedding(V + 1, d)
        self.pos = nn.Embedding(L, d)
        layer = nn.TransformerEncoderLayer(d, 2, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(d, V)

    def forward(self, x):
        h = self.enc(self.tok(x) + self.pos.weight)
        return self.head(h)


def bayes_loss(seq):
    # exact posterior of an inner token given both neighbours
    post = P[seq[:, :-2]] * P[:, seq[:, 2:]].permute(1, 2, 0)
    post = post / post.sum(-1, keepdim=True)
    return -post.gather(-1, seq[:, 1:-1, None]).log().mean()


model = Enc()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(1, 221):
    seq = chain(48)
    where = torch.randint(1, L - 1, (48,))
    rows = torch.arange(48)
    inp = seq.clone()
    inp[rows, where] = MASK
    loss = nn.functional.cross_entropy(model(inp)[rows, where], seq[rows, where])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.3f}")
with torch.no_grad():
    seq = chain(1500)
    where = torch.randint(1, L - 1, (1500,))
    inp = seq.clone()
    inp[torch.arange(1500), where] = MASK
    v = nn.functional.cross_entropy(model(inp)[torch.arange(1500), where], seq[torch.arange(1500), where])
print(f"held-out loss {v.item():.3f}, best possible {bayes_loss(seq).item():.3f}, uniform {torch.tensor(float(V)).log().item():.3f}")
