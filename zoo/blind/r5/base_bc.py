# Behaviour cloning of a goal-reaching expert.  The goal (one of five sites) is shown only in the first
# two time steps and the velocity is never observed, so the policy needs memory.
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


SITES = np.array([[-0.9, -0.9], [-0.9, 0.9], [0.9, -0.9], [0.9, 0.9], [0.0, 0.0]])


@dataclass
class Config:
    seed: int = 3
    demos: int = 512
    horizon: int = 20
    hidden: int = 48
    epochs: int = 40
    batch: int = 64
    lr: float = 6e-3
    dt: float = 0.25
    eval_episodes: int = 200


class World:
    """A batch of damped point masses in the plane."""

    def __init__(self, n, cfg, rng):
        self.cfg, self.rng, self.n = cfg, rng, n
        self.pos = rng.uniform(-1, 1, (n, 2))
        self.vel = rng.normal(0, 0.05, (n, 2))
        self.goal = SITES[rng.integers(0, len(SITES), n)]
        self.t = 0

    def observe(self):
        cue = self.goal if self.t < 2 else np.zeros_like(self.goal)
        flag = np.full((self.n, 1), float(self.t < 2))
        return np.concatenate([self.pos, cue, flag], axis=1)

    def expert(self):
        return np.clip(2.5 * (self.goal - self.pos) - 2.2 * self.vel, -1, 1)

    def step(self, act):
        wind = self.rng.normal(0, 0.2, act.shape)
        self.vel = 0.97 * self.vel + self.cfg.dt * (act + wind)
        self.pos = self.pos + self.cfg.dt * self.vel
        self.t += 1


class Policy(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden):
        super().__init__()
        self.inp = nn.Linear(obs_dim + act_dim, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, act_dim)

    def forward(self, obs, prev, h=None):
        z = torch.relu(self.inp(torch.cat([obs, prev], dim=-1)))
        z, h = self.rnn(z, h)
        return torch.tanh(self.out(z)), h


def collect(cfg, rng):
    world = World(cfg.demos, cfg, rng)
    obs, act = [], []
    for _ in range(cfg.horizon):
        a = world.expert()
        obs.append(world.observe())
        act.append(a)
        world.step(a)
    obs = torch.tensor(np.stack(obs, 1), dtype=torch.float32)
    act = torch.tensor(np.stack(act, 1), dtype=torch.float32)
    return obs, act


def shifted(act):
    prev = torch.zeros_like(act)
    prev[:, 1:] = act[:, :-1]
    return prev


@torch.no_grad()
def rollout(policy, cfg, seed):
    policy.eval()
    world = World(cfg.eval_episodes, cfg, np.random.default_rng(seed))
    prev = torch.zeros(cfg.eval_episodes, 1, 2)
    h = None
    for _ in range(cfg.horizon):
        obs = torch.tensor(world.observe(), dtype=torch.float32).unsqueeze(1)
        a, h = policy(obs, prev, h)
        world.step(a[:, 0].numpy().astype(np.float64))
        prev = a
    dist = np.linalg.norm(world.pos - world.goal, axis=1)
    return dist.mean(), (dist < 0.3).mean()


def main(cfg):
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    obs, act = collect(cfg, rng)
    prev = shifted(act)
    policy = Policy(obs.shape[-1], act.shape[-1], cfg.hidden)
    opt = torch.optim.Adam(policy.parameters(), lr=cfg.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, cfg.epochs)
    for epoch in range(1, cfg.epochs + 1):
        policy.train()
        order = torch.randperm(cfg.demos)
        total = 0.0
        for i in range(0, cfg.demos, cfg.batch):
            idx = order[i:i + cfg.batch]
            pred, _ = policy(obs[idx], prev[idx])
            loss = ((pred - act[idx]) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            opt.step()
            total += loss.item() * len(idx)
        sched.step()
        if epoch % 5 == 0 or epoch == 1:
            dist, ok = rollout(policy, cfg, seed=100)
            print(f"epoch {epoch:3d} | bc mse {total / cfg.demos:.4f} | rollout distance {dist:.3f} | reached {ok:.2f}")
    dist, ok = rollout(policy, cfg, seed=200)
    print(f"done: bc mse {total / cfg.demos:.4f}, final distance {dist:.3f}, reached goal {ok:.3f}")


if __name__ == "__main__":
    main(Config())
