"""Stateful next-event model on parallel event streams: the windows are read in time order (no shuffling)
and the hidden state is carried from one window to the next and cut from the graph."""
import numpy as np
import torch
import torch.nn as nn

LANES, WIN, WINDOWS, K = 24, 12, 260, 6


def stream(lanes, length, seed):
    rng = np.random.default_rng(seed)
    trans = np.full((3, K, K), 0.04)
    for mode in range(3):
        perm = np.random.default_rng(100 + mode).permutation(K)
        trans[mode, np.arange(K), perm] += 1.2
    trans /= trans.sum(-1, keepdims=True)
    ev = np.zeros((lanes, length), dtype=np.int64)
    mode = rng.integers(0, 3, lanes)
    cdf = trans.cumsum(-1)
    for t in range(1, length):
        flip = rng.random(lanes) < 0.01
        mode = np.where(flip, rng.integers(0, 3, lanes), mode)
        u = rng.random(lanes)[:, None]
        ev[:, t] = (u > cdf[mode, ev[:, t - 1]]).sum(1).clip(max=K - 1)
    return torch.from_numpy(ev)


class Next(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(K, 16)
        self.gru = nn.GRU(16, 40, batch_first=True)
        self.out = nn.Linear(40, K)

    def forward(self, x, h=None):
        z, h = self.gru(self.emb(x), h)
        return self.out(z), h


torch.manual_seed(6)
train = stream(LANES, WIN * WINDOWS + 1, 1)
test = stream(40, 200, 2)
net, ce = Next(), nn.CrossEntropyLoss()
opt = torch.optim.RMSprop(net.parameters(), lr=3e-3)
h = None
log = []
for w in range(WINDOWS):
    x = train[:, w * WIN:(w + 1) * WIN]
    y = train[:, w * WIN + 1:(w + 1) * WIN + 1]
    if h is not None:
        h = h.detach()
    logits, h = net(x, h)
    loss = ce(logits.reshape(-1, K), y.reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    log.append(loss.item())
    if (w + 1) % 40 == 0:
        with torch.no_grad():
            out, _ = net(test[:, :-1])
            hit = (out.argmax(-1) == test[:, 1:]).float().mean().item()
            tl = ce(out.reshape(-1, K), test[:, 1:].reshape(-1)).item()
        print(f"window {w + 1} loss {np.mean(log[-40:]):.4f} test loss {tl:.4f} next-event acc {hit:.4f}")
