"""Actor-critic on a small pole-balancing task."""

import argparse
import math
import random
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

parser = argparse.ArgumentParser(description="Actor-critic example")
parser.add_argument("--gamma", type=float, default=0.99)
parser.add_argument("--seed", type=int, default=543)
parser.add_argument("--episodes", type=int, default=150)
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
        self.action_head = nn.Linear(64, 2)
        self.value_head = nn.Linear(64, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


model = Policy()
optimizer = optim.Adam(model.parameters(), lr=1e-2)


def select_action(state):
    state = torch.from_numpy(state).float()
    probs, state_value = model(state)
    m = Categorical(probs)
    action = m.sample()
    model.saved_actions.append((m.log_prob(action), state_value))
    return action.item()


def finish_episode():
    R = 0
    policy_losses = []
    value_losses = []
    returns = []
    for r in model.rewards[::-1]:
        R = r + args.gamma * R
        returns.insert(0, R)
    for (log_prob, value), R in zip(model.saved_actions, returns, strict=True):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
    return loss.item()


def main():
    running_reward = 10
    for i_episode in range(args.episodes):
        state, _ = env.reset()
        ep_reward = 0
        for _ in count():
            action = select_action(state)
            state, reward, terminated, truncated, _ = env.step(action)
            model.rewards.append(reward)
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
