import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn

random.seed(1)
np.random.seed(1)
torch.manual_seed(1)


class Shop:
    def reset(self):
        self.stock, self.day = 12, 0
        return self.obs()

    def obs(self):
        return np.array([self.stock / 20, np.sin(self.day * 0.9), np.cos(self.day * 0.9)], dtype=np.float32)

    def step(self, order):
        self.stock = min(30, self.stock + 3 * order)
        demand = 1 + np.random.poisson(4 + 2 * np.sin(self.day * 0.9))
        sold = min(self.stock, demand)
        self.stock -= sold
        self.day += 1
        with np.errstate(divide="ignore"):
            reward = np.log(sold / demand) - 0.02 * self.stock      # log fill rate minus holding cost
        return self.obs(), float(reward), self.day >= 40


q = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 4))
target = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 4))
target.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters(), lr=1e-3)
memory = deque(maxlen=2000)
env, updates, eps = Shop(), 0, 0.35
obs = env.reset()
for t in range(420):
    if t < 150 or random.random() < eps:
        a = random.choice([1, 2, 3])
    else:
        with torch.no_grad():
            a = int(q(torch.from_numpy(obs)).argmax())
    nxt, r, done = env.step(a)
    memory.append((obs, a, r, nxt, done))
    obs = env.reset() if done else nxt
    if len(memory) < 64:
        continue
    s, ac, rw, s2, d = zip(*random.sample(memory, 32))
    s, s2 = torch.tensor(np.stack(s)), torch.tensor(np.stack(s2))
    ac, rw = torch.tensor(ac), torch.tensor(rw, dtype=torch.float32)
    d = torch.tensor(d, dtype=torch.float32)
    with torch.no_grad():
        y = rw + 0.95 * (1 - d) * target(s2).max(1).values
    qa = q(s).gather(1, ac[:, None]).squeeze(1)
    loss = nn.functional.mse_loss(qa, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    updates += 1
    if updates % 25 == 0:
        target.load_state_dict(q.state_dict())
        print(updates, "td loss", loss.item())
