"""One session at a time (lengths differ, no padding), gradients summed over 16 sessions."""
import random
import torch
import torch.nn as nn

random.seed(0)
torch.manual_seed(0)
N = 20
jump = list(range(N))
random.shuffle(jump)


def session():
    s = [random.randrange(N)]
    for _ in range(random.randint(5, 15)):
        s.append(jump[s[-1]] if random.random() < 0.85 else random.randrange(N))
    return torch.tensor(s)


class Rec(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(N, 24)
        self.cell = nn.GRUCell(24, 24)
        self.bias = nn.Parameter(torch.zeros(N))

    def forward(self, s):
        h = torch.zeros(24)
        out = []
        for item in self.emb(s):
            h = self.cell(item, h)
            out.append(h)
        return torch.stack(out) @ self.emb.weight.t() + self.bias


model = Rec()
opt = torch.optim.Adam(model.parameters(), lr=2e-2)
val = [session() for _ in range(40)]
ACC, pending, log = 8, 0, []
opt.zero_grad()
for seen in range(1, 481):
    s = session()
    loss = nn.functional.cross_entropy(model(s[:-1]), s[1:], reduction="sum")
    (loss / (ACC * 10)).backward()
    log.append(loss.item() / (len(s) - 1))
    pending += 1
    if pending == ACC:
        opt.step()
        opt.zero_grad()
        pending = 0
    if seen % 80 == 0:
        with torch.no_grad():
            hit = [(model(v[:-1])[-1].topk(3).indices == v[-1]).any().item() for v in val]
        print(f"{seen} sessions, nll per click {sum(log[-80:]) / 80:.3f}, val recall@3 {sum(hit) / len(hit):.2f}")
