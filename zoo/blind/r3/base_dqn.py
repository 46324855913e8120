import copy
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn

SEED = 5
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)


class IceLake:
    """4x4 lake, walk from anywhere to the bottom right; holes end the walk."""
    MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])
    HOLES = {(1, 1), (1, 3), (2, 3), (3, 0)}

    def __init__(self, size=4, limit=20):
        self.size, self.limit = size, limit
        self.starts = [(r, c) for r in range(size) for c in range(size) if (r, c) not in self.HOLES and r + c < 2 * size - 2]

    def reset(self):
        self.pos = np.array(random.choice(self.starts), dtype=np.float32)
        self.t = 0
        return self.pos.copy()

    def step(self, action):
        self.t += 1
        self.pos += self.MOVES[action]
        np.clip(self.pos, 0, self.size - 1, out=self.pos)
        cell = tuple(int(v) for v in self.pos)
        if cell == (self.size - 1, self.size - 1):
            return self.pos.copy(), 1.0, True
        if cell in self.HOLES:
            return self.pos.copy(), -1.0, True
        return self.pos.copy(), -0.02, self.t >= self.limit


class QNet(nn.Module):
    def __init__(self, size=4, n_actions=4):
        super().__init__()
        self.size = size
        self.net = nn.Sequential(nn.Linear(2 * size, 64), nn.ReLU(), nn.Linear(64, n_actions))

    def forward(self, s):
        hot = nn.functional.one_hot(s.long(), self.size).float().flatten(1)
        return self.net(hot)


class Agent:
    def __init__(self, gamma=0.95, lr=3e-3):
        self.q = QNet()
        self.q_target = copy.deepcopy(self.q)
        self.opt = torch.optim.Adam(self.q.parameters(), lr=lr)
        self.memory = deque(maxlen=5000)
        self.gamma = gamma
        self.updates = 0

    def act(self, state, eps):
        if random.random() < eps:
            return random.randrange(4)
        with torch.no_grad():
            return self.q(torch.from_numpy(state)[None]).argmax(1).item()

    def learn(self, batch_size=64):
        batch = random.sample(self.memory, batch_size)
        s, a, r, s2, done = zip(*batch)
        s, s2 = torch.from_numpy(np.stack(s)), torch.from_numpy(np.stack(s2))
        a, r, done = torch.tensor(a), torch.tensor(r), torch.tensor(done, dtype=torch.float32)
        q = self.q(s).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            target = r + self.gamma * (1 - done) * self.q_target(s2).max(dim=1).values
        loss = nn.functional.smooth_l1_loss(q, target)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.updates += 1
        if self.updates % 25 == 0:
            self.q_target.load_state_dict(self.q.state_dict())
        return loss.item()


def rollout(env, agent, eps, store=False):
    state, done, total = env.reset(), False, 0.0
    losses = []
    while not done:
        action = agent.act(state, eps)
        nxt, reward, done = env.step(action)
        if store:
            agent.memory.append((state, action, reward, nxt, done))
            if len(agent.memory) > 100:
                losses.append(agent.learn())
        state = nxt
        total += reward
    return total, losses


env, agent = IceLake(), Agent()
returns, losses = [], []
for episode in range(1, 201):
    eps = max(0.05, 1.0 - episode / 110)
    ret, ls = rollout(env, agent, eps, store=True)
    returns.append(ret)
    losses += ls
    if episode % 25 == 0:
        greedy = np.mean([rollout(env, agent, eps=0.0)[0] for _ in range(8)])
        print(f"episode {episode:3d}  eps {eps:.2f}  loss {np.mean(losses[-100:]):.5f}  "
              f"mean return {np.mean(returns[-25:]):+.3f}  greedy return {greedy:+.2f}")
