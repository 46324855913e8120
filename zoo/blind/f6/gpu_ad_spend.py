import torch
import torch.nn as nn

torch.manual_seed(23)
device = "cuda"
CHANNELS, BATCH, STEPS = 10, 64, 400
LAUNCHES = {262: [31, 50], 330: [7]}

gen = torch.Generator().manual_seed(3)
effect = torch.rand(CHANNELS, generator=gen)


def week(step):
    spend = torch.rand(BATCH, CHANNELS, generator=gen) * 30
    if step in LAUNCHES:
        spend[LAUNCHES[step]] *= 40
    sales = (spend * effect).sum(1) + 0.002 * (spend[:, 0] * spend[:, 1])
    return spend, sales / 100


class SquaredReLU(nn.Module):
    def forward(self, x):
        return torch.relu(x).square()


class Response(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.inp = nn.Linear(CHANNELS, hidden)
        self.act = SquaredReLU()
        self.out = nn.Linear(hidden, 1)
        nn.init.normal_(self.out.weight, std=1e-4)

    def forward(self, spend):
        h = self.act(self.inp(spend))
        return self.out(h)[:, 0]


model = Response().to(device)
opt = torch.optim.Adam(model.parameters(), lr=5e-4)
losses = []
for step in range(STEPS):
    spend, sales = (t.to(device) for t in week(step))
    with torch.autocast(device, dtype=torch.float16):
        pred = model(spend)
    loss = nn.functional.smooth_l1_loss(pred.float(), sales)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    losses.append(loss.item())
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("final", losses[-1])
