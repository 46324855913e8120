import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)


class Grid:
    """5x5 grid, start top-left, goal bottom-right, two pits."""
    moves = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    pits = {(2, 2), (3, 1)}

    def __init__(self):
        self.state = np.zeros(2, dtype=np.float32)

    def reset(self):
        self.state = np.zeros(2, dtype=np.float32)
        self.t = 0
        return self.state

    def step(self, a):
        self.t += 1
        nxt = np.clip(self.state + np.array(self.moves[a], dtype=np.float32), 0, 4)
        self.state = nxt
        cell = (int(nxt[0]), int(nxt[1]))
        if cell == (4, 4):
            return self.state, 1.0, True
        if cell in self.pits:
            return self.state, -1.0, True
        return self.state, -0.02, self.t >= 40


def encode(s):
    s = torch.as_tensor(np.array(s)).long()
    return torch.cat([nn.functional.one_hot(s[:, 0], 5), nn.functional.one_hot(s[:, 1], 5)], 1).float()


def make_net():
    return nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 4))


q, target = make_net(), make_net()
target.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters(), lr=2e-3)
buffer = deque(maxlen=4000)
gamma, eps, sync_every, batch_size = 0.95, 1.0, 50, 64
env = Grid()
s, returns, ep_ret, losses = env.reset(), [], 0.0, []
for step in range(1, 2001):
    if random.random() < eps:
        a = random.randrange(4)
    else:
        with torch.no_grad():
            a = q(encode([s])).argmax().item()
    s2, r, done = env.step(a)
    buffer.append((s, a, r, s2, float(done)))
    ep_ret += r
    s = s2
    if done:
        returns.append(ep_ret)
        s, ep_ret = env.reset(), 0.0
    eps = max(0.1, eps - 1 / 1300)
    if len(buffer) >= 200 and step % 3 == 0:
        bs, ba, br, bs2, bd = zip(*random.sample(buffer, batch_size))
        ba, br, bd = torch.tensor(ba), torch.tensor(br), torch.tensor(bd)
        qa = q(encode(bs)).gather(1, ba.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best_next = target(encode(bs2)).max(1).values
            y = br + gamma * (1 - bd) * best_next
        loss = nn.functional.smooth_l1_loss(qa, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    if step % sync_every == 0:
        target.load_state_dict(q.state_dict())
    if step % 400 == 0:
        print(f"step {step}  td loss {np.mean(losses[-100:]):.4f}  return {np.mean(returns[-10:]):.3f}  eps {eps:.2f}")

with torch.no_grad():
    s, total, done = env.reset(), 0.0, False
    while not done:
        s, r, done = env.step(q(encode([s])).argmax().item())
        total += r
    print(f"greedy return {total:.3f}   mean Q at start {q(encode([np.zeros(2)])).mean():.3f}")
