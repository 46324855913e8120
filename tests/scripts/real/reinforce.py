"""REINFORCE on a small pole-balancing task."""

import argparse
import math
import random
from collections import deque
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

parser = argparse.ArgumentParser(description="REINFORCE example")
parser.add_argument("--gamma", type=float, default=0.99)
parser.add_argument("--seed", type=int, default=543)
parser.add_argument("--episodes", type=int, default=120)
parser.add_argument("--log-interval", type=int, default=10)
args = parser.parse_args()


class CartPole:
    """Keep a pole upright by pushing its cart; one point a step, at most 60."""

    def reset(self, seed=None):
        if seed is not None:
            self.random = random.Random(seed)
        self.state = [self.random.uniform(-0.05, 0.05) for _ in range(4)]
        self.steps = 0
        return np.array(self.state, dtype=np.float32), {}

    def step(self, action):
        x, x_dot, theta, theta_dot = self.state
        force = 10.0 if action == 1 else -10.0
        temp = (force + 0.05 * theta_dot**2 * math.sin(theta)) / 1.1
        turn = (9.8 * math.sin(theta) - math.cos(theta) * temp) / (
            0.5 * (4 / 3 - 0.1 * math.cos(theta) ** 2 / 1.1)
        )
        push = temp - 0.05 * turn * math.cos(theta) / 1.1
        self.state = [x + 0.02 * x_dot, x_dot + 0.02 * push]
        self.state += [theta + 0.02 * theta_dot, theta_dot + 0.02 * turn]
        self.steps += 1
        failed = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095
        return np.array(self.state, dtype=np.float32), 1.0, failed, self.steps >= 60, {}


env = CartPole()
env.reset(seed=args.seed)
torch.manual_seed(args.seed)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 64)
        self.dropout = nn.Dropout(p=0.2)
        self.affine2 = nn.Linear(64, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x)))
        return F.softmax(self.affine2(x), dim=1)


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = np.finfo(np.float32).eps.item()


def select_action(state):
    state = torch.from_numpy(state).float().unsqueeze(0)
    probs = policy(state)
    m = Categorical(probs)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode():
    R = 0
    policy_loss = []
    returns = deque()
    for r in policy.rewards[::-1]:
        R = r + args.gamma * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for log_prob, R in zip(policy.saved_log_probs, returns, strict=True):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]
    return policy_loss.item()


def main():
    running_reward = 10
    for i_episode in range(args.episodes):
        state, _ = env.reset()
        ep_reward = 0
        for _ in count():
            action = select_action(state)
            state, reward, terminated, truncated, _ = env.step(action)
            policy.rewards.append(reward)
            ep_reward += reward
            if terminated or truncated:
                break
        running_reward = 0.05 * ep_reward + (1 - 0.05) * running_reward
        loss = finish_episode()
        if i_episode % args.log_interval == 0:
            print(
                f"Episode {i_episode}\tLoss: {loss}\tLast reward: {ep_reward:.2f}"
                f"\tAverage reward: {running_reward:.2f}"
            )


if __name__ == "__main__":
    main()
