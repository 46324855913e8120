"""DQN with a replay buffer of the script's own and a target network."""

import random
from collections import deque, namedtuple

import gymnasium as gym
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("obs", "next_obs", "action", "reward", "done"))


class ReplayBuffer:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def add(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        batch = Transition(*zip(*random.sample(self.memory, batch_size)))
        return Transition(*(torch.stack(each) for each in batch))


class QNetwork(nn.Module):
    def __init__(self, env):
        super().__init__()
        size = int(env.observation_space.shape[0])
        self.network = nn.Sequential(
            nn.Linear(size, 32), nn.ReLU(), nn.Linear(32, env.action_space.n)
        )

    def forward(self, x):
        return self.network(x)


def main():
    random.seed(1)
    torch.manual_seed(1)
    env = gym.make("CartPole-v1")
    q_network = QNetwork(env)
    optimizer = optim.Adam(q_network.parameters(), lr=2.5e-4)
    target_network = QNetwork(env)
    target_network.load_state_dict(q_network.state_dict())
    rb = ReplayBuffer(1000)
    obs, _ = env.reset(seed=1)
    for global_step in range(400):
        if random.random() < 0.2:
            action = env.action_space.sample()
        else:
            q_values = q_network(torch.Tensor(obs))
            action = torch.argmax(q_values).item()
        next_obs, reward, termination, truncation, infos = env.step(action)
        rb.add(
            torch.Tensor(obs),
            torch.Tensor(next_obs),
            torch.tensor(int(action)),
            torch.tensor(float(reward)),
            torch.tensor(float(termination)),
        )
        obs = next_obs
        if termination or truncation:
            obs, _ = env.reset()
        if global_step > 64:
            if global_step % 2 == 0:
                data = rb.sample(32)
                with torch.no_grad():
                    target_max, _ = target_network(data.next_obs).max(dim=1)
                    td_target = data.reward + 0.99 * target_max * (1 - data.done)
                old_val = q_network(data.obs).gather(1, data.action[:, None]).squeeze()
                loss = F.mse_loss(td_target, old_val)
                if global_step % 100 == 0:
                    print("losses/td_loss", loss.item(), global_step)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if global_step % 50 == 0:
                for target, own in zip(target_network.parameters(), q_network.parameters()):
                    target.data.copy_(0.9 * own.data + 0.1 * target.data)


main()
