import hashlib
import json
import os
import random
from collections import namedtuple
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.distributions import Categorical

random.seed(543)
torch.manual_seed(543)

GAMMA = 0.95
EPISODES = 150
SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


class Corridor:
    """Walk to the goal, which is at the left or the right end; every step costs."""

    size = 7

    def reset(self):
        self.position = self.size // 2
        self.goal = random.choice([0, self.size - 1])
        self.t = 0
        return self.observe()

    def observe(self):
        state = torch.zeros(self.size + 1)
        state[self.position] = 1.0
        state[-1] = 1.0 if self.goal else -1.0
        return state

    def step(self, action):
        self.position = min(max(self.position + (1 if action else -1), 0), self.size - 1)
        self.t += 1
        reached = self.position == self.goal
        return self.observe(), 1.0 if reached else -0.1, reached or self.t >= 15


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(Corridor.size + 1, 32)
        self.action_head = nn.Linear(32, 2)
        self.value_head = nn.Linear(32, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


env = Corridor()
model = Policy()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}


def select_action(state):
    probs, state_value = model(state)
    m = Categorical(probs)
    action = m.sample()
    model.saved_actions.append(SavedAction(m.log_prob(action), state_value))
    return action.item()


def finish_episode():
    ret = 0.0
    returns = []
    for r in model.rewards[::-1]:
        ret = r + GAMMA * ret
        returns.insert(0, ret)

    policy_losses, value_losses = [], []
    for (log_prob, value), ret in zip(model.saved_actions, returns, strict=True):
        advantage = ret - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([ret])))

    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
    optimizer.step()

    history["loss"].append(loss.item())
    history["grad_norm"].append(norm.item())
    history["lr"].append(optimizer.param_groups[0]["lr"])
    del model.rewards[:]
    del model.saved_actions[:]


@torch.no_grad()
def play_greedy(episodes=10):
    total = 0.0
    for _ in range(episodes):
        state, done = env.reset(), False
        while not done:
            probs, _ = model(state)
            state, reward, done = env.step(probs.argmax().item())
            total += reward
    return total / episodes


running_reward = 0.0
for i_episode in range(1, EPISODES + 1):
    state, ep_reward, done = env.reset(), 0.0, False
    while not done:
        action = select_action(state)
        state, reward, done = env.step(action)
        model.rewards.append(reward)
        ep_reward += reward
    running_reward = 0.05 * ep_reward + 0.95 * running_reward
    finish_episode()
    if i_episode % 50 == 0:
        print(f"Episode {i_episode}\tAverage reward: {running_reward:.2f}\t{play_greedy():.2f}")

if "HISTORY" in os.environ:
    weights = b"".join(v.numpy().tobytes() for v in model.state_dict().values())
    history["weights"] = hashlib.sha256(weights).hexdigest()
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
