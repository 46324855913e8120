import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn

SEED = 21
random.seed(SEED); np.random.seed(SEED); torch.manual_seed(SEED)


class Market:
    """Each day put 0 %, 50 % or 100 % of the wealth into one asset; reward is log growth."""
    FRACTIONS = (0.0, 0.5, 1.0)

    def reset(self):
        self.wealth, self.day = 1.0, 0
        self.signal = np.random.randn(4)
        return self.obs()

    def obs(self):
        return np.append(self.signal, min(self.wealth, 5.0)).astype(np.float32)

    def step(self, action):
        ret = 0.02 * self.signal[0] + 0.05 * np.random.randn()
        if np.random.rand() < 0.004:
            ret = -1.0
        new = self.wealth * (1 + self.FRACTIONS[action] * ret)
        reward = float(np.log(new / self.wealth))
        self.wealth = new
        self.day += 1
        self.signal = np.random.randn(4)
        return self.obs(), reward, self.day >= 30 or self.wealth <= 0


class Agent:
    def __init__(self):
        mk = lambda: nn.Sequential(nn.Linear(5, 48), nn.ReLU(), nn.Linear(48, 3))
        self.q, self.tgt = mk(), mk()
        self.tgt.load_state_dict(self.q.state_dict())
        self.opt = torch.optim.Adam(self.q.parameters(), lr=1e-3)
        self.memory = deque(maxlen=5000)
        self.updates = 0

    def act(self, s, eps):
        if random.random() < eps:
            return random.randrange(3)
        with torch.no_grad():
            return int(self.q(torch.from_numpy(s)).argmax())

    def learn(self, batch=32, gamma=0.95):
        s, a, r, s2, d = zip(*random.sample(self.memory, batch))
        s, s2 = torch.from_numpy(np.stack(s)), torch.from_numpy(np.stack(s2))
        a, r, d = torch.tensor(a), torch.tensor(r), torch.tensor(d).float()
        with torch.no_grad():
            goal = 10 * r + gamma * (1 - d) * self.tgt(s2).max(1).values
        q = self.q(s).gather(1, a[:, None]).squeeze(1)
        loss = (q - goal).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.updates += 1
        if self.updates % 50 == 0:
            self.tgt.load_state_dict(self.q.state_dict())
        return loss.item()


env, agent = Market(), Agent()
s = env.reset()
for t in range(1000):
    a = agent.act(s, eps=max(0.1, 1 - t / 600))
    s2, r, done = env.step(a)
    agent.memory.append((s, a, r, s2, done))
    s = env.reset() if done else s2
    if t >= 100 and t % 2 == 0:
        loss = agent.learn()
        if agent.updates % 25 == 0:
            print(f"t={t} updates={agent.updates} td_loss={loss:.5f}")
