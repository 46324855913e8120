"""Adds two numbers digit by digit, with less and less teacher forcing."""
import torch
import torch.nn as nn

torch.manual_seed(10)
H = 64


def batch(n):
    a, b = torch.randint(0, 10, (n, 2)), torch.randint(0, 10, (n, 2))   # least significant first
    out, carry = [], torch.zeros(n, dtype=torch.long)
    for i in range(2):
        s = a[:, i] + b[:, i] + carry
        out.append(s % 10)
        carry = s // 10
    out.append(carry)
    return torch.stack([a, b], 2), torch.stack(out, 1)


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.da, self.db = nn.Embedding(10, 24), nn.Embedding(10, 24)
        self.enc = nn.GRU(48, H, batch_first=True)
        self.prev = nn.Embedding(11, 24)
        self.cell = nn.GRUCell(24 + H, H)
        self.out = nn.Linear(2 * H, 10)

    def forward(self, x, y, p_force):
        mem, h = self.enc(torch.cat([self.da(x[..., 0]), self.db(x[..., 1])], -1))
        h = h[0]
        prev = torch.full((len(x),), 10)
        logits = []
        for i in range(3):
            w = torch.softmax((mem @ h.unsqueeze(2)).squeeze(2) / H ** 0.5, 1)
            ctx = (w.unsqueeze(2) * mem).sum(1)
            h = self.cell(torch.cat([self.prev(prev), ctx], 1), h)
            lo = self.out(torch.cat([h, ctx], 1))
            logits.append(lo)
            own = lo.argmax(1).detach()
            prev = torch.where(torch.rand(len(x)) < p_force, y[:, i], own)
        return torch.stack(logits, 1)


model = Adder()
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
STEPS = 200
for step in range(STEPS):
    p = max(0.0, 1 - 1.5 * step / STEPS)
    x, y = batch(48)
    logits = model(x, y, p)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
    if (step + 1) % 20 == 0:
        print(f"step {step + 1} forcing {p:.2f} loss {loss.item():.3f}")
with torch.no_grad():
    x, y = batch(500)
    pred = model(x, y, 0.0).argmax(-1)
print(f"free-running digit accuracy {(pred == y).float().mean():.3f}")
