import torch
import torch.nn as nn

torch.manual_seed(8)
FEATURES, BATCH, STEPS = 12, 24, 320


def hospital_register(n):
    gen = torch.Generator().manual_seed(21)
    x = torch.randn(n, FEATURES, generator=gen)
    risk = 0.8 * x[:, 0] - 0.6 * x[:, 1] + 0.5 * x[:, 2] * x[:, 3]
    life = torch.empty(n).exponential_(1.0, generator=gen) * torch.exp(-risk)
    follow_up = torch.cat([torch.full((n // 2,), 4.0), torch.logspace(0.6, -2.2, n - n // 2)])
    event = (life <= follow_up).float()
    time = torch.minimum(life, follow_up)
    return x, time, event


class RiskNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(FEATURES, 48), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1),
        )

    def forward(self, x):
        return self.net(x)[:, 0]


def partial_likelihood(score, time, event):
    order = torch.argsort(time, descending=True)
    score, event = score[order], event[order]
    at_risk = torch.logcumsumexp(score, 0)
    return -((score - at_risk) * event).sum() / event.sum()


x, time, event = hospital_register(BATCH * STEPS)
model = RiskNet()
opt = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
losses = []
for step in range(STEPS):
    rows = slice(step * BATCH, (step + 1) * BATCH)
    loss = partial_likelihood(model(x[rows]), time[rows], event[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("final", losses[-1])
