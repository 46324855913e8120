import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(202)


def market(step, n=48):
    x = torch.randn(n, 6)
    level = 0.0 if step < 250 else 25.0
    slope = 1.0 if step < 250 else -1.0
    y = slope * x[:, 0] + 0.5 * x[:, 1].abs() + level + 0.1 * torch.randn(n)
    return x, y


class Pricer(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.a = nn.Linear(6, hidden)
        self.b = nn.Linear(hidden, hidden)
        self.c = nn.Linear(hidden, 1)

    def forward(self, x):
        h = F.relu(self.a(x))
        h = F.relu(self.b(h))
        return self.c(h).squeeze(1)


model = Pricer()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
slow = None
for step in range(900):
    x, y = market(step)
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    slow = loss.item() if slow is None else 0.9 * slow + 0.1 * loss.item()
    if step % 30 == 0:
        print(f"step {step} loss {loss.item():.4f} slow {slow:.4f}")
print("end", round(slow, 4))
