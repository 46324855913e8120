# Double-DQN-style agent on a vectorised pole-balancing task (own numpy implementation).
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)

N_ENVS = 16
STEPS = 6000
WARMUP = 100
GAMMA = 0.98
LR = 1e-3
LR_END = 5e-5
BATCH = 128
SYNC_EVERY = 100
MAX_T = 200


class PoleEnv:
    """Batch of cart-poles, reset automatically. Reward 1 per step, falling ends the episode."""

    def __init__(self, n, seed):
        self.rng = np.random.default_rng(seed)
        self.n = n
        self.s = self.rng.uniform(-0.05, 0.05, (n, 4))
        self.t = np.zeros(n, int)

    def step(self, a):
        x, xd, th, thd = self.s.T
        force = np.where(a == 1, 10.0, -10.0)
        cos, sin = np.cos(th), np.sin(th)
        tmp = (force + 0.05 * thd ** 2 * sin) / 1.1
        tha = (9.8 * sin - cos * tmp) / (0.5 * (4 / 3 - 0.1 * cos ** 2 / 1.1))
        xa = tmp - 0.05 * tha * cos / 1.1
        self.s = np.stack([x + 0.02 * xd, xd + 0.02 * xa, th + 0.02 * thd, thd + 0.02 * tha], 1)
        self.t += 1
        fell = (np.abs(self.s[:, 0]) > 2.4) | (np.abs(self.s[:, 2]) > 0.209)
        nxt = self.s.copy()
        over = fell | (self.t >= MAX_T)
        self.s[over] = self.rng.uniform(-0.05, 0.05, (over.sum(), 4))
        length = self.t[over].copy()
        self.t[over] = 0
        return nxt, fell, length


class Replay:
    def __init__(self, cap):
        self.cap, self.i, self.full = cap, 0, False
        self.s = torch.zeros(cap, 4)
        self.a = torch.zeros(cap, dtype=torch.long)
        self.r = torch.zeros(cap)
        self.s2 = torch.zeros(cap, 4)
        self.done = torch.zeros(cap)

    def add(self, s, a, r, s2, done):
        n = len(a)
        j = torch.arange(self.i, self.i + n) % self.cap
        self.s[j], self.a[j], self.r[j], self.s2[j], self.done[j] = s, a, r, s2, done
        self.full = self.full or self.i + n >= self.cap
        self.i = (self.i + n) % self.cap

    def sample(self, n):
        j = torch.randint(0, self.cap if self.full else self.i, (n,))
        return self.s[j], self.a[j], self.r[j], self.s2[j], self.done[j]


def make_net():
    return nn.Sequential(
        nn.Linear(4, 64), nn.ReLU(),
        nn.Linear(64, 64), nn.ReLU(),
        nn.Linear(64, 2),
    )


def obs(s):
    return torch.tensor(s * np.array([0.5, 0.5, 5.0, 0.5]), dtype=torch.float32)


@torch.no_grad()
def play(net, seed, episodes=20):
    """Mean episode length of the greedy policy."""
    env = PoleEnv(episodes, seed)
    alive, length = np.ones(episodes, bool), np.zeros(episodes)
    for _ in range(MAX_T):
        length += alive
        _, fell, _ = env.step(net(obs(env.s)).argmax(1).numpy())
        alive &= ~fell
    return length.mean()


torch.manual_seed(0)
rng = np.random.default_rng(0)
env, buf = PoleEnv(N_ENVS, 0), Replay(100000)
q = make_net()
target = copy.deepcopy(q)
opt = torch.optim.Adam(q.parameters(), lr=LR)

losses, lengths, qs = [], [], []
for step in range(1, STEPS + 1):
    eps = max(0.05, 1 - step / (0.4 * STEPS))
    s = obs(env.s)
    with torch.no_grad():
        a = q(s).argmax(1).numpy()
    a = np.where(rng.random(N_ENVS) < eps, rng.integers(0, 2, N_ENVS), a)
    nxt, fell, finished = env.step(a)
    lengths += finished.tolist()
    buf.add(s, torch.tensor(a), torch.ones(N_ENVS), obs(nxt), torch.tensor(fell, dtype=torch.float32))
    if step < WARMUP:
        continue

    bs, ba, br, bs2, bd = buf.sample(BATCH)
    with torch.no_grad():
        best = q(bs2).argmax(1, keepdim=True)
        y = br + GAMMA * (1 - bd) * target(bs2).gather(1, best).squeeze(1)
    pred = q(bs).gather(1, ba[:, None]).squeeze(1)
    loss = F.smooth_l1_loss(pred, y)
    opt.param_groups[0]["lr"] = LR + (LR_END - LR) * step / STEPS
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(q.parameters(), 10.0)
    opt.step()
    if step % SYNC_EVERY == 0:
        target.load_state_dict(q.state_dict())
    losses.append(loss.item())
    qs.append(pred.mean().item())
    if step % 750 == 0:
        print(f"step {step}: td loss {np.mean(losses):.4f}  mean Q {np.mean(qs):.2f}  "
              f"train episode {np.mean(lengths[-50:]):.1f}  greedy episode {play(q, 100 + step):.1f}")
        losses, qs = [], []

print(f"final greedy episode length {play(q, 9999, 50):.1f} of {MAX_T}")
