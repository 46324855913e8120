"""Small DQN with target network: TD loss goes up while values grow, return improves."""
import random
from collections import deque
import torch
import torch.nn as nn

random.seed(19)
torch.manual_seed(19)
SIZE = 6


class Grid:
    def reset(self):
        self.p, self.t = [0, 0], 0
        return self.obs()

    def obs(self):
        v = torch.zeros(2 * SIZE)
        v[self.p[0]] = 1
        v[SIZE + self.p[1]] = 1
        return v

    def step(self, a):
        d = [(0, 1), (1, 0), (0, -1), (-1, 0)][a]
        n = [min(max(self.p[k] + d[k], 0), SIZE - 1) for k in (0, 1)]
        if n not in ([1, 1], [2, 3], [4, 2], [3, 4]):
            self.p = n
        self.t += 1
        done = self.p == [SIZE - 1, SIZE - 1]
        return self.obs(), 10.0 if done else -0.2, done, done or self.t >= 40


q = nn.Sequential(nn.Linear(2 * SIZE, 64), nn.ReLU(), nn.Linear(64, 4))
tgt = nn.Sequential(nn.Linear(2 * SIZE, 64), nn.ReLU(), nn.Linear(64, 4))
tgt.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters(), lr=1.5e-3)
buf = deque(maxlen=5000)
env = Grid()


@torch.no_grad()
def greedy_return():
    o, tot, end = env.reset(), 0.0, False
    while not end:
        o, r, _, end = env.step(q(o).argmax().item())
        tot += r
    return tot


steps, losses = 0, []
o = env.reset()
while steps < 4000:
    eps = max(0.1, 1 - steps / 2000)
    with torch.no_grad():
        a = random.randrange(4) if random.random() < eps else q(o).argmax().item()
    o2, r, done, end = env.step(a)
    buf.append((o, a, r, o2, float(done)))
    o = env.reset() if end else o2
    steps += 1
    if steps > 300:
        s, a_, r_, s2, d_ = zip(*random.sample(buf, 64))
        s, s2 = torch.stack(s), torch.stack(s2)
        with torch.no_grad():
            y = torch.tensor(r_) + 0.97 * (1 - torch.tensor(d_)) * tgt(s2).max(1).values
        loss = nn.functional.smooth_l1_loss(q(s).gather(1, torch.tensor(a_)[:, None]).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        if steps % 150 == 0:
            tgt.load_state_dict(q.state_dict())
    if steps % 400 == 0:
        with torch.no_grad():
            mq = q(o).max().item()
        print(f"step {steps} eps {eps:.2f} td loss {sum(losses[-200:]) / max(len(losses[-200:]), 1):.4f} q {mq:.2f} greedy return {greedy_return():.2f}")
        o = env.reset()
print(f"final greedy return {greedy_return():.2f} (optimum 8.2)")
