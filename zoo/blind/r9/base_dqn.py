"""Double DQN for a docking task: a thruster-driven point must reach a berth without hitting the walls."""
import copy
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
SEED = 3
N_ENV, ITERS, BATCH = 16, 2800, 128
GAMMA, TAU, LR = 0.97, 0.015, 2e-3
CAPACITY, START = 40_000, 1_000
EPS_FIRST, EPS_LAST, EPS_ITERS = 1.0, 0.05, 1400
T_MAX = 50
THRUST = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], dtype=np.float32)


class DockEnv:
    """Vectorised, resets finished episodes by itself."""

    def __init__(self, n, seed):
        self.n, self.rng = n, np.random.default_rng(seed)
        self.obs = np.zeros((n, 6), np.float32)
        self.t = np.zeros(n, int)
        self._reset(np.arange(n))

    def _reset(self, idx):
        k = len(idx)
        pos = self.rng.uniform(-0.8, 0.8, (k, 2))
        goal = self.rng.uniform(-0.7, 0.7, (k, 2))
        self.obs[idx] = np.concatenate([pos, self.rng.normal(0, 0.02, (k, 2)), goal], 1)
        self.t[idx] = 0

    def observe(self):
        return self.obs.copy()

    def step(self, a):
        o = self.obs
        o[:, 2:4] = 0.9 * o[:, 2:4] + 0.03 * THRUST[a] + self.rng.normal(0, 0.003, (self.n, 2))
        o[:, 0:2] += o[:, 2:4]
        self.t += 1
        dist = np.linalg.norm(o[:, 4:6] - o[:, 0:2], axis=1)
        docked = dist < 0.12
        crashed = (np.abs(o[:, 0:2]) > 1).any(1)
        reward = (-0.05 - 0.1 * dist).astype(np.float32)
        reward[crashed] -= 3.0
        terminal = docked | crashed
        timeout = (self.t >= T_MAX) & ~terminal
        last = self.observe()
        over = np.flatnonzero(terminal | timeout)
        info = {"docked": docked, "crashed": crashed, "timeout": timeout}
        if len(over):
            self._reset(over)
        return last, reward, terminal, info


class Replay:
    def __init__(self, cap, dim):
        self.s = np.zeros((cap, dim), dtype=np.float32)
        self.s2 = np.zeros((cap, dim), dtype=np.float32)
        self.a = np.zeros(cap, dtype=np.int64)
        self.r = np.zeros(cap, dtype=np.float32)
        self.d = np.zeros(cap, dtype=np.float32)
        self.cap, self.i, self.full = cap, 0, 0

    def add(self, s, a, r, s2, d):
        idx = (self.i + np.arange(len(a))) % self.cap
        self.s[idx], self.a[idx], self.r[idx], self.s2[idx], self.d[idx] = s, a, r, s2, d
        self.i = (self.i + len(a)) % self.cap
        self.full = min(self.full + len(a), self.cap)

    def sample(self, n, rng):
        j = rng.integers(0, self.full, n)
        return [torch.from_numpy(v[j]) for v in (self.s, self.a, self.r, self.s2, self.d)]


def make_q():
    return nn.Sequential(
        nn.Linear(6, 96), nn.ReLU(),
        nn.Linear(96, 96), nn.ReLU(),
        nn.Linear(96, len(THRUST)),
    )


@torch.no_grad()
def act(net, obs, eps, rng):
    a = net(torch.from_numpy(obs)).argmax(1).numpy()
    rand = rng.random(len(a)) < eps
    a[rand] = rng.integers(0, len(THRUST), rand.sum())
    return a


def evaluate(net, n=200, seed=999):
    env, rng = DockEnv(n, seed), np.random.default_rng(0)
    alive, ret = np.ones(n, bool), np.zeros(n)
    out = {"docked": 0, "crashed": 0, "timeout": 0}
    for _ in range(T_MAX):
        _, r, term, info = env.step(act(net, env.observe(), 0.0, rng))
        ret += r * alive
        for k in out:
            out[k] += int((info[k] & alive).sum())
        alive &= ~(term | info["timeout"])
    return ret.mean(), {k: v / n for k, v in out.items()}


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    env, buf = DockEnv(N_ENV, SEED), Replay(CAPACITY, 6)
    q = make_q()
    target = copy.deepcopy(q)
    opt = torch.optim.Adam(q.parameters(), lr=LR)
    losses, qs = [], []
    for it in range(1, ITERS + 1):
        eps = max(EPS_LAST, EPS_FIRST + (EPS_LAST - EPS_FIRST) * it / EPS_ITERS)
        obs = env.observe()
        a = act(q, obs, eps, rng)
        nxt, r, term, info = env.step(a)
        buf.add(obs, a, r, nxt, term)
        if buf.full < START:
            continue
        s, ab, rb, s2, d = buf.sample(BATCH, rng)
        with torch.no_grad():
            best = q(s2).argmax(1, keepdim=True)
            y = rb + GAMMA * (1 - d) * target(s2).gather(1, best).squeeze(1)
        q_sa = q(s).gather(1, ab.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(q_sa, y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(q.parameters(), 10.0)
        opt.step()
        with torch.no_grad():
            for p, pt in zip(q.parameters(), target.parameters()):
                pt.lerp_(p, TAU)
        losses.append(loss.item())
        qs.append(q_sa.mean().item())
        if it % 400 == 0:
            ret, out = evaluate(q)
            print(f"iter {it:5d} eps {eps:.2f} td-loss {np.mean(losses[-400:]):.4f} mean Q {np.mean(qs[-400:]):+.2f} "
                  f"| eval return {ret:+.2f} docked {out['docked']:.2f} crashed {out['crashed']:.2f} "
                  f"timeout {out['timeout']:.2f}")


if __name__ == "__main__":
    main()
