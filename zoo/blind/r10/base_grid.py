"""PPO on a small gridworld: a modest exit close by, a vault further away, pits in between."""
import time

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

LAYOUT = ["#########",
          "#V..o...#",
          "#.#.#.#.#",
          "#...#...#",
          "##o.....#",
          "#...#.#e#",
          "#.#...o.#",
          "#...#..s#",
          "#########"]
MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])


class VaultGrid:
    """Batch of independent grids with automatic reset. The observation buffer is reused between steps."""

    def __init__(self, n, seed, max_steps=60, slip=0.05):
        self.n, self.max_steps, self.slip = n, max_steps, slip
        self.rng = np.random.default_rng(seed)
        self.grid = np.array([list(r) for r in LAYOUT])
        free = np.argwhere((self.grid == ".") | (self.grid == "s"))
        self.starts = free[(free[:, 0] >= 4) & (free[:, 1] >= 3)]
        self.size = self.grid.shape[0]
        self.obs_dim = self.size ** 2 + 1
        self._obs = np.zeros((n, self.obs_dim), dtype=np.float32)
        self.pos = np.zeros((n, 2), dtype=int)
        self.t = np.zeros(n, dtype=int)

    def _place(self, mask):
        self.pos[mask] = self.starts[self.rng.integers(len(self.starts), size=mask.sum())]
        self.t[mask] = 0

    def _observe(self):
        self._obs.fill(0.0)
        self._obs[np.arange(self.n), self.pos[:, 0] * self.size + self.pos[:, 1]] = 1.0
        self._obs[:, -1] = self.t / self.max_steps
        return self._obs

    def reset(self):
        self._place(np.ones(self.n, dtype=bool))
        return self._observe()

    def step(self, action):
        slipped = self.rng.random(self.n) < self.slip
        action = np.where(slipped, self.rng.integers(4, size=self.n), action)
        target = self.pos + MOVES[action]
        blocked = self.grid[target[:, 0], target[:, 1]] == "#"
        self.pos = np.where(blocked[:, None], self.pos, target)
        self.t += 1
        cell = self.grid[self.pos[:, 0], self.pos[:, 1]]
        reward = np.full(self.n, -0.01, dtype=np.float32)
        reward[cell == "V"] += 1.0
        reward[cell == "e"] += 0.3
        reward[cell == "o"] -= 0.5
        done = np.isin(cell, ["V", "e", "o"]) | (self.t >= self.max_steps)
        self._place(done)
        return self._observe(), reward, done.astype(np.float32)


class ActorCritic(nn.Module):
    def __init__(self, obs_dim, n_actions, hidden=64):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, n_actions))
        self.critic = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.orthogonal_(m.weight, 1.0)
                nn.init.zeros_(m.bias)
        nn.init.orthogonal_(self.actor[-1].weight, 0.01)

    def forward(self, obs):
        return Categorical(logits=self.actor(obs)), self.critic(obs)


class PPO:
    gamma, lam, clip = 0.98, 0.92, 0.2
    lr = 2.5e-3
    ent_coef, vf_coef = 0.02, 0.5
    n_envs, horizon, n_epochs, n_minibatches = 24, 32, 4, 4
    updates = 110

    def __init__(self, seed=5):
        torch.manual_seed(seed)
        self.env = VaultGrid(self.n_envs, seed)
        self.net = ActorCritic(self.env.obs_dim, len(MOVES))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=self.lr, eps=1e-5)
        self.sched = torch.optim.lr_scheduler.LinearLR(self.opt, 1.0, 0.1, total_iters=self.updates)
        self.obs = self.env.reset()
        self.episode_return = np.zeros(self.n_envs)
        self.finished = []

    @torch.no_grad()
    def rollout(self):
        obs_l, act_l, logp_l, val_l, rew_l, done_l = [], [], [], [], [], []
        for _ in range(self.horizon):
            obs = torch.from_numpy(self.obs.copy())
            dist, value = self.net(obs)
            action = dist.sample()
            self.obs, reward, done = self.env.step(action.numpy())
            self.episode_return += reward
            for i in np.flatnonzero(done):
                self.finished.append(self.episode_return[i])
                self.episode_return[i] = 0.0
            obs_l.append(obs)
            act_l.append(action)
            logp_l.append(dist.log_prob(action))
            val_l.append(value.squeeze(-1))
            rew_l.append(torch.from_numpy(reward))
            done_l.append(torch.from_numpy(done))
        last_value = self.net(torch.from_numpy(self.obs))[1].squeeze(-1)
        values = torch.stack(val_l + [last_value])
        adv = self.advantages(torch.stack(rew_l), values, torch.stack(done_l))
        returns = adv + values[:-1]
        flat = lambda x: x.reshape(-1, *x.shape[2:])
        return [flat(x) for x in (torch.stack(obs_l), torch.stack(act_l), torch.stack(logp_l), adv, returns)]

    def advantages(self, rewards, values, dones):
        adv = torch.zeros_like(rewards)
        running = torch.zeros(rewards.shape[1])
        for t in reversed(range(len(rewards))):
            alive = 1.0 - dones[t]
            delta = rewards[t] + self.gamma * alive * values[t + 1] - values[t]
            running = delta + self.gamma * self.lam * alive * running
            adv[t] = running
        return adv

    def update(self, obs, act, logp_old, adv, returns):
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        stats = []
        for _ in range(self.n_epochs):
            for idx in torch.randperm(len(obs)).chunk(self.n_minibatches):
                dist, value = self.net(obs[idx])
                ratio = (dist.log_prob(act[idx]) - logp_old[idx]).exp()
                clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
                pg_loss = -torch.min(ratio * adv[idx], clipped * adv[idx]).mean()
                v_loss = (value.squeeze(-1) - returns[idx]).pow(2).mean()
                entropy = dist.entropy().mean()
                loss = pg_loss + self.vf_coef * v_loss - self.ent_coef * entropy
                self.opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
                self.opt.step()
                stats.append((pg_loss.item(), v_loss.item(), entropy.item()))
        self.sched.step()
        return np.mean(stats, axis=0)

    @torch.no_grad()
    def evaluate(self, episodes=300, seed=99):
        env = VaultGrid(episodes, seed)
        obs, total, alive = env.reset(), np.zeros(episodes), np.ones(episodes)
        vault = np.zeros(episodes)
        for _ in range(env.max_steps):
            action = self.net(torch.from_numpy(obs))[0].sample()
            obs, reward, done = env.step(action.numpy())
            total += alive * reward
            vault += alive * (reward > 0.5)
            alive *= 1 - done
        return total.mean(), vault.mean()


def main():
    torch.set_num_threads(1)
    ppo, start = PPO(), time.time()
    for it in range(1, ppo.updates + 1):
        pg, vl, ent = ppo.update(*ppo.rollout())
        if it % 10 == 0:
            recent = np.mean(ppo.finished[-200:])
            print(f"update {it:3d}  return {recent:+.3f}  policy {pg:+.4f}  value {vl:.4f}  entropy {ent:.3f}  "
                  f"({time.time() - start:.1f}s)")
    ret, vault = ppo.evaluate()
    print(f"test: mean return {ret:+.3f}  vault rate {vault:.3f}")


if __name__ == "__main__":
    main()
