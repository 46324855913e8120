"""DQN in a single file, with a replay buffer and a target network, on a corridor to walk along."""

import os
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


@dataclass
class Args:
    seed: int = 1
    learning_rate: float = 2.5e-3
    total_timesteps: int = 3000
    buffer_size: int = 2000
    gamma: float = 0.95
    tau: float = 1.0
    target_network_frequency: int = 100
    batch_size: int = 32
    start_e: float = 1.0
    end_e: float = 0.05
    exploration_fraction: float = 0.5
    learning_starts: int = 400
    train_frequency: int = 5
    fault: str = os.environ.get("FAULT", "")


class Corridor:
    """Walk from one end to the other; noise in what is seen, 1 point at the end."""

    length = 8

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def observe(self):
        seen = np.zeros(self.length, dtype=np.float32)
        seen[self.place] = 1.0
        return seen + self.random.normal(0, 0.05, self.length).astype(np.float32)

    def reset(self):
        self.place, self.steps = 0, 0
        return self.observe()

    def step(self, action):
        self.place = max(0, self.place + (1 if action == 1 else -1))
        self.steps += 1
        done = self.place == self.length - 1
        return self.observe(), float(done) - 0.01, done, self.steps >= 50


class ReplayBuffer:
    def __init__(self, size):
        self.size, self.data = size, []
        self.at = 0

    def add(self, *transition):
        if len(self.data) < self.size:
            self.data.append(transition)
        else:
            self.data[self.at] = transition
        self.at = (self.at + 1) % self.size

    def sample(self, count):
        rows = [self.data[i] for i in np.random.randint(0, len(self.data), count)]
        columns = [np.array(column, dtype=np.float32) for column in zip(*rows, strict=True)]
        return [torch.from_numpy(column) for column in columns]


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(8, 60), nn.ReLU(), nn.Linear(60, 42), nn.ReLU(), nn.Linear(42, 2)
        )

    def forward(self, x):
        return self.network(x)


def linear_schedule(start_e, end_e, duration, t):
    slope = (end_e - start_e) / duration
    return max(slope * t + start_e, end_e)


if __name__ == "__main__":
    args = Args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    env = Corridor(args.seed)
    q_network = QNetwork()
    optimizer = optim.Adam(q_network.parameters(), lr=args.learning_rate)
    target_network = QNetwork()
    target_network.load_state_dict(q_network.state_dict())
    rb = ReplayBuffer(args.buffer_size)
    obs = env.reset()
    updates, episodic_return = 0, 0.0
    for global_step in range(args.total_timesteps):
        epsilon = linear_schedule(
            args.start_e, args.end_e, args.exploration_fraction * args.total_timesteps, global_step
        )
        if random.random() < epsilon:
            action = random.randint(0, 1)
        else:
            action = torch.argmax(q_network(torch.from_numpy(obs))).item()
        next_obs, reward, terminated, truncated = env.step(action)
        episodic_return += reward
        rb.add(obs, action, reward, next_obs, terminated)
        obs = next_obs
        if terminated or truncated:
            if global_step % 10 == 0:
                print(f"global_step={global_step}, episodic_return={episodic_return:.2f}")
            obs, episodic_return = env.reset(), 0.0
        # ALGO LOGIC: training.
        if global_step > args.learning_starts:
            if global_step % args.train_frequency == 0:
                observations, actions, rewards, next_observations, dones = rb.sample(
                    args.batch_size
                )
                with torch.no_grad():
                    target_max, _ = target_network(next_observations).max(dim=1)
                    td_target = rewards.flatten() + args.gamma * target_max * (1 - dones.flatten())
                old_val = q_network(observations).gather(1, actions.long()[:, None]).squeeze()
                loss = F.mse_loss(td_target, old_val)
                # optimize the model
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if updates % 10 == 0:
                    print(f"losses/td_loss {loss.item()}")
                updates += 1
            # update target network
            if global_step % args.target_network_frequency == 0:
                for target_param, q_param in zip(
                    target_network.parameters(), q_network.parameters(), strict=True
                ):
                    target_param.data.copy_(
                        args.tau * q_param.data + (1.0 - args.tau) * target_param.data
                    )
    print("updates", updates)
