"""Adding numbers with a GRU; sequence length grows, so the training loss goes up at every stage."""
import torch
import torch.nn as nn

torch.manual_seed(16)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 32, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[1][0]).squeeze(1)


def batch(n, length):
    v = torch.rand(n, length)
    m = torch.zeros(n, length)
    for row in m:
        row[torch.randperm(length)[:2]] = 1
    return torch.stack([v, m], 2), (v * m).sum(1)


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
xv, yv = batch(500, 24)
for length in (4, 8, 12, 18, 24):
    for part in range(2):
        tot = 0.0
        for _ in range(60):
            x, y = batch(48, length)
            loss = (net(x) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            tot += loss.item() / 60
        with torch.no_grad():
            v = (net(xv) - yv).pow(2).mean().item()
        print(f"length {length:2d} train mse {tot:.4f} | val mse at length 24 {v:.4f} (guess mean {yv.var().item():.3f})")
