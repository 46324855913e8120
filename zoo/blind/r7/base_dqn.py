"""DQN on a vectorised grid world with pits and a moving goal."""
import copy
import random
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)

SIZE, N_ENVS, LIMIT = 5, 16, 25
GAMMA, LR, BATCH = 0.95, 2e-3, 128
ITERATIONS, WARMUP, SYNC_EVERY = 900, 60, 40
EPS_START, EPS_END, EPS_ITERS = 1.0, 0.1, 500
MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])
PITS = {(1, 1), (3, 2), (1, 3)}


class GridWorld:
    """State = agent row/col and goal row/col. +1 on the goal, -1 in a pit, -0.02 per move."""

    def __init__(self, n, seed):
        self.n, self.rng = n, np.random.RandomState(seed)
        self.state = np.zeros((n, 4), dtype=np.int64)
        self.t = np.zeros(n, dtype=np.int64)
        for i in range(n):
            self.reset_one(i)

    def free_cell(self):
        while True:
            c = tuple(self.rng.randint(SIZE, size=2))
            if c not in PITS:
                return c

    def reset_one(self, i):
        a, g = self.free_cell(), self.free_cell()
        while g == a:
            g = self.free_cell()
        self.state[i] = (*a, *g)
        self.t[i] = 0

    def observe(self):
        return self.state.copy()

    def step(self, actions):
        self.state[:, :2] = np.clip(self.state[:, :2] + MOVES[actions], 0, SIZE - 1)
        self.t += 1
        reward = np.full(self.n, -0.02, dtype=np.float32)
        terminated = np.zeros(self.n, dtype=bool)
        for i, (r, c, gr, gc) in enumerate(self.state):
            if (r, c) == (gr, gc):
                reward[i], terminated[i] = 1.0, True
            elif (r, c) in PITS:
                reward[i], terminated[i] = -1.0, True
        next_obs = self.observe()
        over = terminated | (self.t >= LIMIT)
        for i in np.flatnonzero(over):
            self.reset_one(i)
        return next_obs, reward, terminated, over


def encode(obs):
    obs = torch.as_tensor(obs)
    return F.one_hot(obs, SIZE).flatten(1).float()


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4 * SIZE, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 4))

    def forward(self, x):
        return self.net(x)


class Replay:
    def __init__(self, capacity=20000):
        self.rows, self.capacity, self.pos = [], capacity, 0

    def add(self, row):
        if len(self.rows) < self.capacity:
            self.rows.append(row)
        else:
            self.rows[self.pos] = row
        self.pos = (self.pos + 1) % self.capacity

    def sample(self, n):
        s, a, r, s2, d = zip(*random.sample(self.rows, n))
        return (encode(np.stack(s)), torch.tensor(a), torch.tensor(r, dtype=torch.float32), encode(np.stack(s2)),
                torch.tensor(d, dtype=torch.float32))


@torch.no_grad()
def evaluate(q_net, episodes=64, seed=123):
    env = GridWorld(episodes, seed)
    alive = np.ones(episodes, dtype=bool)
    total, won = np.zeros(episodes), np.zeros(episodes, dtype=bool)
    for _ in range(LIMIT):
        actions = q_net(encode(env.observe())).argmax(1).numpy()
        _, reward, terminated, over = env.step(actions)
        total += reward * alive
        won |= alive & terminated & (reward > 0)
        alive &= ~over
    return total.mean(), won.mean()


env = GridWorld(N_ENVS, seed=7)
online = QNet()
target = copy.deepcopy(online)
replay = Replay()
opt = torch.optim.Adam(online.parameters(), lr=LR)
sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.2, total_iters=ITERATIONS)

losses, updates = [], 0
obs = env.observe()
for it in range(ITERATIONS):
    eps = EPS_START + (EPS_END - EPS_START) * min(1.0, it / EPS_ITERS)
    with torch.no_grad():
        greedy = online(encode(obs)).argmax(1).numpy()
    explore = np.random.rand(N_ENVS) < eps
    actions = np.where(explore, np.random.randint(4, size=N_ENVS), greedy)
    next_obs, reward, terminated, over = env.step(actions)
    for i in range(N_ENVS):
        replay.add((obs[i], int(actions[i]), float(reward[i]), next_obs[i], bool(terminated[i])))
    obs = env.observe()
    if it < WARMUP:
        continue

    s, a, r, s2, done = replay.sample(BATCH)
    with torch.no_grad():
        next_q = target(s2).max(dim=1).values
        goal = r + GAMMA * (1 - done) * next_q
    q = online(s).gather(1, a[:, None]).squeeze(1)
    loss = F.smooth_l1_loss(q, goal)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(online.parameters(), 5.0)
    opt.step()
    sched.step()
    updates += 1
    losses.append(loss.item())
    if updates % SYNC_EVERY == 0:
        target.load_state_dict(online.state_dict())
    if (it + 1) % 150 == 0:
        ret, win = evaluate(online)
        print(f"iter {it + 1} eps {eps:.2f} td loss {np.mean(losses[-150:]):.4f} mean q {q.mean().item():.3f} "
              f"eval return {ret:.3f} success {win:.3f}")

ret, win = evaluate(online, episodes=256, seed=999)
print(f"final greedy return {ret:.3f} success rate {win:.3f}")
