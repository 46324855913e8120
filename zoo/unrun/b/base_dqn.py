import random
from collections import deque

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

ENV = "LunarLander-v3"
SEED = 1
GAMMA = 0.99
BATCH = 128
BUFFER = 100_000
WARMUP = 5_000
TRAIN_EVERY = 4
TARGET_EVERY = 2_000
EPS_START, EPS_END, EPS_STEPS = 1.0, 0.05, 100_000
LR = 5e-4
TOTAL_STEPS = 400_000
EVAL_EVERY = 20_000


class QNet(nn.Module):
    def __init__(self, obs_dim, n_actions, hidden=128):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(obs_dim, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, n_actions),
        )

    def forward(self, obs):
        return self.net(obs)


class Replay:
    def __init__(self, capacity):
        self.data = deque(maxlen=capacity)

    def __len__(self):
        return len(self.data)

    def add(self, obs, action, reward, next_obs, terminated):
        self.data.append((obs, action, reward, next_obs, terminated))

    def sample(self, size, device):
        obs, action, reward, next_obs, terminated = zip(*random.sample(self.data, size))
        return (
            torch.as_tensor(np.stack(obs), dtype=torch.float32, device=device),
            torch.as_tensor(action, dtype=torch.int64, device=device),
            torch.as_tensor(reward, dtype=torch.float32, device=device),
            torch.as_tensor(np.stack(next_obs), dtype=torch.float32, device=device),
            torch.as_tensor(terminated, dtype=torch.float32, device=device),
        )


def act(q, obs, eps, n_actions, device):
    if random.random() < eps:
        return random.randrange(n_actions)
    with torch.no_grad():
        values = q(torch.as_tensor(obs, dtype=torch.float32, device=device)[None])
    return int(values.argmax(dim=1).item())


def update(q, target, opt, batch):
    obs, action, reward, next_obs, terminated = batch
    value = q(obs).gather(1, action[:, None]).squeeze(1)
    with torch.no_grad():
        best_action = q(next_obs).argmax(dim=1, keepdim=True)
        next_value = target(next_obs).gather(1, best_action).squeeze(1)
        goal = reward + GAMMA * (1 - terminated) * next_value
    loss = F.smooth_l1_loss(value, goal)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(q.parameters(), 10.0)
    opt.step()
    return loss.item()


def evaluate(q, device, episodes=10):
    env = gym.make(ENV)
    returns = []
    for k in range(episodes):
        obs, _ = env.reset(seed=10_000 + k)
        total, done = 0.0, False
        while not done:
            obs, reward, terminated, truncated, _ = env.step(act(q, obs, 0.0, env.action_space.n, device))
            total += reward
            done = terminated or truncated
        returns.append(total)
    env.close()
    return float(np.mean(returns))


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    env = gym.make(ENV)
    n_actions = int(env.action_space.n)
    q = QNet(env.observation_space.shape[0], n_actions).to(device)
    target = QNet(env.observation_space.shape[0], n_actions).to(device)
    target.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), lr=LR)
    replay = Replay(BUFFER)

    best, losses = -float("inf"), deque(maxlen=500)
    obs, _ = env.reset(seed=SEED)
    for step in range(1, TOTAL_STEPS + 1):
        eps = max(EPS_END, EPS_START - (EPS_START - EPS_END) * step / EPS_STEPS)
        action = act(q, obs, eps, n_actions, device)
        next_obs, reward, terminated, truncated, _ = env.step(action)
        replay.add(obs, action, reward, next_obs, terminated)
        obs = next_obs
        if terminated or truncated:
            obs, _ = env.reset()

        if len(replay) >= WARMUP and step % TRAIN_EVERY == 0:
            losses.append(update(q, target, opt, replay.sample(BATCH, device)))
        if step % TARGET_EVERY == 0:
            target.load_state_dict(q.state_dict())
        if step % EVAL_EVERY == 0:
            score = evaluate(q, device)
            print(f"step {step} eps {eps:.2f} loss {np.mean(losses):.4f} return {score:.1f}")
            if score > best:
                best = score
                torch.save(q.state_dict(), "dqn_lander.pt")


if __name__ == "__main__":
    main()
