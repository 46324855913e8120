import torch
import torch.nn as nn

torch.manual_seed(31)


class ClickModel(nn.Module):
    def __init__(self, n_items=50, d=16):
        super().__init__()
        self.item = nn.Embedding(n_items, d)
        self.mlp = nn.Sequential(nn.Linear(d + 6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, item, ctx):
        z = torch.cat([self.item(item), ctx], 1)
        return torch.sigmoid(self.mlp(z)).squeeze(1)


def bce(p, y):
    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()


n = 4000
item = torch.randint(0, 50, (n,))
ctx = torch.randn(n, 6)
bias = torch.randn(50)
clicked = ((ctx[:, 0] * 2 + ctx[:, 1] + bias[item]) > 0).float()

model = ClickModel()
optim = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(400):
    rows = torch.randint(0, n, (64,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        prob = model(item[rows], ctx[rows])
        loss = bce(prob, clicked[rows])
    optim.zero_grad()
    loss.backward()
    optim.step()
    if step % 40 == 0:
        print("step", step, "loss", round(loss.item(), 4))
