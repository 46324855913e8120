"""Learns to walk to a goal on a grid, by advantage actor-critic."""

import argparse

import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

SIZE, WALKERS, HORIZON, DISCOUNT, UPDATES = 6, 32, 6, 0.95, 270
MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])


class Grids:
    """Many grids at once: a walker that reaches its goal is paid, and both are placed anew."""

    def __init__(self):
        self.walker = torch.randint(SIZE, (WALKERS, 2))
        self.goal = torch.randint(SIZE, (WALKERS, 2))

    def observe(self):
        return torch.cat((self.walker, self.goal), dim=1) / (SIZE - 1) * 2 - 1

    def step(self, action):
        self.walker = (self.walker + MOVES[action]).clamp(0, SIZE - 1)
        done = (self.walker == self.goal).all(1)
        fresh = torch.randint(SIZE, (WALKERS, 4))
        self.walker = torch.where(done[:, None], fresh[:, :2], self.walker)
        self.goal = torch.where(done[:, None], fresh[:, 2:], self.goal)
        return done.float() - 0.02, done.float()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.policy = nn.Linear(64, len(MOVES))
        self.value = nn.Linear(64, 1)

    def forward(self, x):
        hidden = self.body(x)
        return self.policy(hidden), self.value(hidden).squeeze(-1)


grids = Grids()
model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
earned = 0.0

for update in range(UPDATES):
    log_probs, values, entropies, rewards, dones = [], [], [], [], []
    for _ in range(HORIZON):
        logits, value = model(grids.observe())
        policy = Categorical(logits=logits)
        action = policy.sample()
        reward, done = grids.step(action)
        log_probs.append(policy.log_prob(action))
        entropies.append(policy.entropy())
        values.append(value)
        rewards.append(reward)
        dones.append(done)

    with torch.no_grad():
        ahead = model(grids.observe())[1]
    returns = []
    for reward, done in zip(reversed(rewards), reversed(dones), strict=True):
        ahead = reward + DISCOUNT * ahead * (1 - done)
        returns.insert(0, ahead)
    returns, values = torch.cat(returns), torch.cat(values)
    advantage = returns - values.detach()
    policy_loss = -(torch.cat(log_probs) * advantage).mean()
    value_loss = F.mse_loss(values, returns)
    entropy = torch.cat(entropies).mean()
    loss = policy_loss + 0.5 * value_loss - 0.01 * entropy

    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()

    earned += torch.cat(rewards).mean().item() / 30
    if update % 30 == 29:
        print(
            f"update {update + 1}: reward {earned:.4f} value loss {value_loss.item():.4f}"
            f" entropy {entropy.item():.3f}"
        )
        earned = 0.0
