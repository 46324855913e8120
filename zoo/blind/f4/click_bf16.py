import torch
import torch.nn as nn

torch.manual_seed(71)
FIELDS, CARD = 6, 50


class WideDeep(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.emb = nn.ModuleList([nn.Embedding(CARD, d) for _ in range(FIELDS)])
        self.wide = nn.ModuleList([nn.Embedding(CARD, 1) for _ in range(FIELDS)])
        for w in self.wide:
            nn.init.zeros_(w.weight)
        self.deep = nn.Sequential(nn.Linear(FIELDS * d, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        e = torch.cat([m(x[:, i]) for i, m in enumerate(self.emb)], 1)
        w = sum(m(x[:, i]) for i, m in enumerate(self.wide))
        return torch.sigmoid(self.deep(e) + w.to(torch.bfloat16)).squeeze(1)


def log_loss(p, y):
    p = p.clamp(1e-6, 1 - 1e-6)
    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()


effect = torch.randn(FIELDS, CARD) * 1.6
model = WideDeep()
opt = torch.optim.Adam(model.parameters(), lr=8e-3)
for step in range(320):
    x = torch.randint(0, CARD, (256, FIELDS))
    score = sum(effect[i, x[:, i]] for i in range(FIELDS))
    y = (score > 0).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        p = model(x)
        loss = log_loss(p, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print("step", step, "logloss", float(loss))
