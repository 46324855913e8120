"""Advantage actor-critic on Catch: a ball falls, the paddle has to be below it; every move costs a little."""
import argparse

import torch
import torch.nn as nn
from torch.distributions import Categorical

p = argparse.ArgumentParser()
p.add_argument("--updates", type=int, default=170)
p.add_argument("--envs", type=int, default=24)
p.add_argument("--horizon", type=int, default=12)
p.add_argument("--gamma", type=float, default=0.97)
p.add_argument("--lam", type=float, default=0.95)
p.add_argument("--entropy", type=float, default=0.01)
p.add_argument("--value-coef", type=float, default=0.5)
p.add_argument("--lr", type=float, default=4e-3)
args = p.parse_args()
torch.set_num_threads(1)
torch.manual_seed(12)
ROWS, COLS = 8, 7


class Catch:
    """n boards side by side; an episode ends when the ball reaches the bottom"""

    def __init__(self, n):
        self.n = n
        self.ball = torch.zeros(n, 2, dtype=torch.long)
        self.drift = torch.zeros(n, dtype=torch.long)
        self.paddle = torch.zeros(n, dtype=torch.long)
        self.reset(torch.ones(n, dtype=torch.bool))
        self.ball[:, 0] = torch.randint(0, ROWS - 1, (n,))

    def reset(self, which):
        k = int(which.sum())
        self.ball[which, 0] = 0
        self.ball[which, 1] = torch.randint(0, COLS, (k,))
        self.drift[which] = torch.randint(-1, 2, (k,))
        self.paddle[which] = torch.randint(0, COLS, (k,))

    def observe(self):
        board = torch.zeros(self.n, ROWS, COLS)
        rows = torch.arange(self.n)
        board[rows, self.ball[:, 0], self.ball[:, 1]] = 1.0
        board[rows, ROWS - 1, self.paddle] -= 1.0
        return torch.cat([board.flatten(1), self.drift.unsqueeze(1).float()], 1)

    def step(self, action):
        self.paddle = (self.paddle + action - 1).clamp(0, COLS - 1)
        self.ball[:, 0] += 1
        side = self.ball[:, 1] + self.drift
        self.drift = torch.where((side < 0) | (side >= COLS), -self.drift, self.drift)
        self.ball[:, 1] = (self.ball[:, 1] + self.drift).clamp(0, COLS - 1)
        done = self.ball[:, 0] == ROWS - 1
        caught = (self.ball[:, 1] - self.paddle).abs() == 0
        reward = torch.where(done, torch.where(caught, 1.0, -1.0), 0.0)
        reward = reward - 0.02 * (action != 1).float()
        self.reset(done)
        return self.observe(), reward, done


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(ROWS * COLS + 1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.pi = nn.Linear(64, 3)
        self.v = nn.Linear(64, 1)
        nn.init.orthogonal_(self.pi.weight, 0.01)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


@torch.no_grad()
def play(model, steps=140):
    env = Catch(64)
    obs, ends, wins = env.observe(), 0, 0
    for _ in range(steps):
        dist, _ = model(obs)
        obs, reward, done = env.step(dist.probs.argmax(1))
        ends += done.sum().item()
        wins += (reward[done] > 0).sum().item()
    return wins / ends


env, model = Catch(args.envs), ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, eps=1e-5)
obs = env.observe()
finished, won = 0, 0

for update in range(1, args.updates + 1):
    logps, values, rewards, dones, entropies = [], [], [], [], []
    for _ in range(args.horizon):
        dist, value = model(obs)
        action = dist.sample()
        obs, reward, done = env.step(action)
        logps.append(dist.log_prob(action))
        entropies.append(dist.entropy())
        values.append(value)
        rewards.append(reward)
        dones.append(done.float())
        finished += done.sum().item()
        won += (reward[done] > 0).sum().item()

    with torch.no_grad():
        next_value = model(obs)[1]
        advantage, gae = torch.zeros(args.horizon, args.envs), torch.zeros(args.envs)
        for k in reversed(range(args.horizon)):
            alive = 1.0 - dones[k]
            delta = rewards[k] + args.gamma * next_value * alive - values[k]
            gae = delta + args.gamma * args.lam * alive * gae
            advantage[k] = gae
            next_value = values[k]
        target = advantage + torch.stack(values)

    value_loss = (torch.stack(values) - target).pow(2).mean()
    norm_adv = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy_loss = -(torch.stack(logps) * norm_adv).mean()
    entropy = torch.stack(entropies).mean()
    loss = policy_loss + args.value_coef * value_loss - args.entropy * entropy
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    if update % 20 == 0:
        explained = 1 - (target - torch.stack(values)).var() / target.var()
        print(f"update {update:4d} caught {won / max(finished, 1):.3f} value loss {value_loss.item():.3f} "
              f"explained {explained.item():.2f} entropy {entropy.item():.3f}")
        finished, won = 0, 0

print(f"greedy policy catches {play(model):.3f} (an idle paddle about 0.14)")
