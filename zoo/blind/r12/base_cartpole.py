import math
from collections import deque

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical


class VecCartPole:
    """N cart-poles stepped together, with automatic reset."""

    def __init__(self, n, seed, limit=200):
        self.n, self.limit = n, limit
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros((n, 4), dtype=np.float32)
        self.t = np.zeros(n, dtype=np.int64)
        self.ret = np.zeros(n)

    def _reset(self, mask):
        k = int(mask.sum())
        self.state[mask] = self.rng.uniform(-0.05, 0.05, size=(k, 4))
        self.t[mask] = 0
        self.ret[mask] = 0.0

    def reset(self):
        self._reset(np.ones(self.n, dtype=bool))
        return self.state.copy()

    def step(self, action):
        x, xd, th, thd = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        cos, sin = np.cos(th), np.sin(th)
        tmp = (force + 0.05 * thd ** 2 * sin) / 1.1
        tha = (9.8 * sin - cos * tmp) / (0.5 * (4.0 / 3.0 - 0.1 * cos ** 2 / 1.1))
        xa = tmp - 0.05 * tha * cos / 1.1
        self.state[:] = np.stack([x + 0.02 * xd, xd + 0.02 * xa, th + 0.02 * thd, thd + 0.02 * tha], axis=1)
        self.t += 1
        self.ret += 1.0
        fell = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 12 * math.pi / 180)
        done = fell | (self.t >= self.limit)
        finished = self.ret[done].tolist()
        reward = np.ones(self.n, dtype=np.float32)
        if done.any():
            self._reset(done)
        return self.state.copy(), reward, done.astype(np.float32), finished


def layer_init(layer, std=math.sqrt(2)):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.zeros_(layer.bias)
    return layer


class Agent(nn.Module):
    def __init__(self, obs_dim=4, n_actions=2, hid=48):
        super().__init__()
        self.actor = nn.Sequential(layer_init(nn.Linear(obs_dim, hid)), nn.Tanh(),
                                   layer_init(nn.Linear(hid, hid)), nn.Tanh(),
                                   layer_init(nn.Linear(hid, n_actions), 0.01))
        self.critic = nn.Sequential(layer_init(nn.Linear(obs_dim, hid)), nn.Tanh(),
                                    layer_init(nn.Linear(hid, hid)), nn.Tanh(),
                                    layer_init(nn.Linear(hid, 1), 1.0))

    def dist(self, obs):
        return Categorical(logits=self.actor(obs))

    def value(self, obs):
        return self.critic(obs).squeeze(-1)


class PPO:
    def __init__(self, seed=2, n_envs=8, horizon=96, gamma=0.98, lam=0.95, clip=0.2, epochs=6, minibatches=4, lr=2e-3):
        torch.manual_seed(seed)
        self.env = VecCartPole(n_envs, seed)
        self.agent = Agent()
        self.opt = torch.optim.Adam(self.agent.parameters(), lr=lr, eps=1e-5)
        self.n_envs, self.horizon = n_envs, horizon
        self.gamma, self.lam, self.clip = gamma, lam, clip
        self.epochs, self.minibatches = epochs, minibatches
        self.obs = self.env.reset()
        self.returns = deque(maxlen=20)

    @torch.no_grad()
    def rollout(self):
        buf = {k: [] for k in ("obs", "act", "logp", "rew", "done", "val")}
        for _ in range(self.horizon):
            obs = torch.from_numpy(self.obs)
            d = self.agent.dist(obs)
            act = d.sample()
            nxt, rew, done, finished = self.env.step(act.numpy())
            self.returns.extend(finished)
            buf["obs"].append(obs)
            buf["act"].append(act)
            buf["logp"].append(d.log_prob(act))
            buf["val"].append(self.agent.value(obs))
            buf["rew"].append(torch.from_numpy(rew))
            buf["done"].append(torch.from_numpy(done))
            self.obs = nxt
        last_val = self.agent.value(torch.from_numpy(self.obs))
        return {k: torch.stack(v) for k, v in buf.items()}, last_val

    def gae(self, b, last_val):
        adv = torch.zeros_like(b["rew"])
        running = torch.zeros(self.n_envs)
        for t in reversed(range(self.horizon)):
            nonterminal = 1.0 - b["done"][t]
            next_val = last_val if t == self.horizon - 1 else b["val"][t + 1]
            delta = b["rew"][t] + self.gamma * next_val * nonterminal - b["val"][t]
            running = delta + self.gamma * self.lam * nonterminal * running
            adv[t] = running
        return adv, adv + b["val"]

    def update(self, b, adv, ret):
        obs, act, old_logp = b["obs"].flatten(0, 1), b["act"].flatten(), b["logp"].flatten()
        adv, ret = adv.flatten(), ret.flatten()
        n = len(act)
        stats = []
        for _ in range(self.epochs):
            for idx in torch.randperm(n).chunk(self.minibatches):
                d = self.agent.dist(obs[idx])
                logp = d.log_prob(act[idx])
                ratio = (logp - old_logp[idx]).exp()
                a = adv[idx]
                a = (a - a.mean()) / (a.std() + 1e-8)
                pg = -torch.min(ratio * a, ratio.clamp(1 - self.clip, 1 + self.clip) * a).mean()
                v_loss = 0.5 * ((self.agent.value(obs[idx]) - ret[idx]) ** 2).mean()
                ent = d.entropy().mean()
                loss = pg + 0.5 * v_loss - 0.005 * ent
                self.opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.agent.parameters(), 0.5)
                self.opt.step()
                stats.append((pg.item(), v_loss.item(), ent.item()))
        return np.mean(stats, axis=0)

    def train(self, iterations=32):
        for it in range(1, iterations + 1):
            b, last_val = self.rollout()
            adv, ret = self.gae(b, last_val)
            pg, vl, ent = self.update(b, adv, ret)
            if it % 2 == 0:
                print(f"iter {it:3d} steps {it * self.horizon * self.n_envs:6d} policy {pg:+.4f} value {vl:8.3f} "
                      f"entropy {ent:.3f} mean return {np.mean(self.returns) if self.returns else float('nan'):.1f}")

    @torch.no_grad()
    def evaluate(self, episodes=16):
        env = VecCartPole(episodes, seed=999)
        obs = env.reset()
        alive, total = np.ones(episodes, dtype=bool), np.zeros(episodes)
        for _ in range(env.limit):
            act = self.agent.dist(torch.from_numpy(obs)).probs.argmax(-1).numpy()
            obs, rew, done, _ = env.step(act)
            total += rew * alive
            alive &= done == 0
        return total.mean()


if __name__ == "__main__":
    ppo = PPO()
    print(f"before training: greedy return {ppo.evaluate():.1f}")
    ppo.train()
    print(f"after training: greedy return {ppo.evaluate():.1f}")
