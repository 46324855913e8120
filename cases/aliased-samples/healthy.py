"""Q-learning whose replay buffer stores copies of a state that is updated in place."""

import copy
import random
from collections import deque

import numpy as np
import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
SIZE = 8  # places in a row; the reward is at the right end


class Row:
    """A walk along the row; `state` is one array for the whole run."""

    def __init__(self) -> None:
        self.state = np.zeros(SIZE, np.float32)
        self.place = 0

    def reset(self) -> np.ndarray:
        return self.move(random.randrange(SIZE - 1))

    def move(self, place: int) -> np.ndarray:
        self.place = max(place, 0)
        self.state[:] = 0
        self.state[self.place] = 1
        return self.state

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        state = self.move(self.place + 2 * action - 1)
        done = self.place == SIZE - 1
        return state, float(done), done


model = nn.Sequential(nn.Linear(SIZE, 64), nn.ReLU(), nn.Linear(64, 2))
target_model = copy.deepcopy(model)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
environment = Row()
memory: deque = deque(maxlen=10_000)

state = environment.reset().copy()
for step in range(800):
    action = random.randrange(2)
    next_state, reward, done = environment.step(action)
    memory.append((state, action, reward, next_state.copy(), done))
    state = (environment.reset() if done else next_state).copy()
    if len(memory) < 200:
        continue
    states, actions, rewards, following, ends = zip(*random.sample(memory, 64), strict=True)
    values = model(torch.from_numpy(np.stack(states)))
    values = values.gather(1, torch.tensor(actions)[:, None]).squeeze(1)
    with torch.no_grad():
        next_values = target_model(torch.from_numpy(np.stack(following))).max(dim=1).values
        targets = torch.tensor(rewards) + 0.9 * ~torch.tensor(ends) * next_values
    loss = nn.functional.smooth_l1_loss(values, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        target_model.load_state_dict(model.state_dict())
