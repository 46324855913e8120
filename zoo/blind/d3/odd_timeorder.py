"""River level, stateful GRU; batches go through time in order, state carried over."""
import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(13)
g = np.random.default_rng(13)
n = 12000
rain = np.maximum(0, g.normal(-0.5, 1, n))
lvl = np.zeros(n)
for i in range(1, n):
    lvl[i] = 0.9 * lvl[i - 1] + 0.3 * rain[i - 1] + 0.1 * np.sin(i / 50) + g.normal(0, 0.05)
mu, sd = lvl[:9600].mean(), lvl[:9600].std()
x = torch.tensor(np.stack([rain, (lvl - mu) / sd], 1)[:-1], dtype=torch.float32)
y = torch.tensor(((lvl - mu) / sd)[1:], dtype=torch.float32)
LANES, STEP = 8, 30
lane = 9600 // LANES
xt = x[:9600].reshape(LANES, lane, 2)
yt = y[:9600].reshape(LANES, lane)


class River(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x, h=None):
        o, h = self.rnn(x, h)
        return x[..., 1] + self.out(o).squeeze(-1), h


net = River()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(6):
    h, run, k = None, 0.0, 0
    for i in range(0, lane, STEP):
        o, h = net(xt[:, i:i + STEP], h)
        h = h.detach()
        loss = nn.functional.mse_loss(o, yt[:, i:i + STEP])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        run, k = run + loss.item(), k + 1
    with torch.no_grad():
        o, _ = net(x[None, 9300:])
        v = nn.functional.mse_loss(o[0, 300:], y[9600:]).item()
        naive = nn.functional.mse_loss(x[9600:, 1], y[9600:]).item()
    print(f"epoch {epoch} train mse {run / k:.4f} later-period mse {v:.4f} (persistence {naive:.4f})")
