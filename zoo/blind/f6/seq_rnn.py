import torch
import torch.nn as nn

torch.manual_seed(36)
HIDDEN, BATCH, STEPS = 32, 32, 340


def adding_task(length):
    value = torch.rand(BATCH, length)
    mark = torch.zeros(BATCH, length)
    half = length // 2
    rows = torch.arange(BATCH)
    a = torch.randint(0, half, (BATCH,))
    b = torch.randint(half, length, (BATCH,))
    mark[rows, a] = 1
    mark[rows, b] = 1
    return torch.stack([value, mark], 2), (value * mark).sum(1)


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(2, HIDDEN)
        self.rec = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.out = nn.Linear(HIDDEN, 1)
        with torch.no_grad():
            self.rec.weight.copy_(torch.eye(HIDDEN))

    def forward(self, x):
        h = torch.zeros(len(x), HIDDEN)
        for t in range(x.shape[1]):
            h = torch.relu(self.inp(x[:, t]) + self.rec(h))
        return self.out(h)[:, 0]


def length_at(step):
    return 10 if step < 240 else 60


model = Memory()
opt = torch.optim.SGD(model.parameters(), lr=0.002, momentum=0.9)
losses = []
for step in range(STEPS):
    x, y = adding_task(length_at(step))
    loss = ((model(x) - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} length {length_at(step)} loss {loss.item():.4f}")
print("final", losses[-1])
