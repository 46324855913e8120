"""Double DQN on CartPole with replay buffer and target network (gymnasium)."""
import random

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CFG = dict(
    env="CartPole-v1",
    seed=1,
    total_steps=60_000,
    buffer_size=20_000,
    learning_starts=1_000,
    batch_size=64,
    train_every=2,
    target_every=500,
    gamma=0.99,
    lr=5e-4,
    eps_start=1.0,
    eps_end=0.05,
    eps_steps=20_000,
    eval_every=5_000,
    eval_episodes=10,
)


class QNet(nn.Module):
    def __init__(self, n_obs, n_actions, hidden=128):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_obs, hidden), nn.ReLU(),
                                 nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, n_actions))

    def forward(self, x):
        return self.net(x)


class Replay:
    def __init__(self, size, n_obs):
        self.obs = np.zeros((size, n_obs), dtype=np.float32)
        self.next_obs = np.zeros((size, n_obs), dtype=np.float32)
        self.actions = np.zeros(size, dtype=np.int64)
        self.rewards = np.zeros(size, dtype=np.float32)
        self.terminated = np.zeros(size, dtype=np.float32)
        self.size, self.pos, self.count = size, 0, 0

    def add(self, obs, action, reward, next_obs, terminated):
        i = self.pos
        self.obs[i], self.next_obs[i] = obs, next_obs
        self.actions[i], self.rewards[i], self.terminated[i] = action, reward, terminated
        self.pos = (self.pos + 1) % self.size
        self.count = min(self.count + 1, self.size)

    def sample(self, n, device):
        idx = np.random.randint(0, self.count, size=n)
        arrays = (self.obs[idx], self.actions[idx], self.rewards[idx], self.next_obs[idx], self.terminated[idx])
        return [torch.from_numpy(a).to(device) for a in arrays]


class Agent:
    def __init__(self, n_obs, n_actions, cfg, device):
        self.cfg, self.device, self.n_actions = cfg, device, n_actions
        self.q = QNet(n_obs, n_actions).to(device)
        self.target = QNet(n_obs, n_actions).to(device)
        self.target.load_state_dict(self.q.state_dict())
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=cfg["lr"])

    def act(self, obs, eps):
        if random.random() < eps:
            return random.randrange(self.n_actions)
        with torch.no_grad():
            x = torch.as_tensor(obs, dtype=torch.float32, device=self.device).unsqueeze(0)
            return int(self.q(x).argmax(dim=1))

    def learn(self, batch):
        obs, actions, rewards, next_obs, terminated = batch
        q = self.q(obs).gather(1, actions.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = self.q(next_obs).argmax(dim=1, keepdim=True)
            next_q = self.target(next_obs).gather(1, best).squeeze(1)
            y = rewards + self.cfg["gamma"] * (1.0 - terminated) * next_q
        loss = F.smooth_l1_loss(q, y)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.q.parameters(), 10.0)
        self.optimizer.step()
        return loss.item()

    def sync(self):
        self.target.load_state_dict(self.q.state_dict())


def epsilon(step, cfg):
    frac = min(1.0, step / cfg["eps_steps"])
    return cfg["eps_start"] + frac * (cfg["eps_end"] - cfg["eps_start"])


def evaluate(agent, cfg):
    env = gym.make(cfg["env"])
    returns = []
    for k in range(cfg["eval_episodes"]):
        obs, _ = env.reset(seed=10_000 + k)
        total, done = 0.0, False
        while not done:
            obs, reward, terminated, truncated, _ = env.step(agent.act(obs, 0.0))
            total += reward
            done = terminated or truncated
        returns.append(total)
    env.close()
    return float(np.mean(returns))


def main(cfg):
    random.seed(cfg["seed"])
    np.random.seed(cfg["seed"])
    torch.manual_seed(cfg["seed"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    env = gym.make(cfg["env"])
    env.action_space.seed(cfg["seed"])
    n_obs, n_actions = env.observation_space.shape[0], int(env.action_space.n)
    agent, replay = Agent(n_obs, n_actions, cfg, device), Replay(cfg["buffer_size"], n_obs)

    best, losses, episode_return, recent = -float("inf"), [], 0.0, []
    obs, _ = env.reset(seed=cfg["seed"])
    for step in range(1, cfg["total_steps"] + 1):
        action = agent.act(obs, epsilon(step, cfg))
        next_obs, reward, terminated, truncated, _ = env.step(action)
        replay.add(obs, action, reward, next_obs, terminated)
        episode_return += reward
        obs = next_obs
        if terminated or truncated:
            recent.append(episode_return)
            episode_return = 0.0
            obs, _ = env.reset()
        if step >= cfg["learning_starts"] and step % cfg["train_every"] == 0:
            losses.append(agent.learn(replay.sample(cfg["batch_size"], device)))
        if step % cfg["target_every"] == 0:
            agent.sync()
        if step % cfg["eval_every"] == 0:
            score = evaluate(agent, cfg)
            print(f"step {step} eps {epsilon(step, cfg):.2f} loss {np.mean(losses[-500:]):.4f} "
                  f"train return {np.mean(recent[-20:]):.1f} eval return {score:.1f}")
            if score >= best:
                best = score
                torch.save(agent.q.state_dict(), "dqn_best.pt")
    env.close()


if __name__ == "__main__":
    main(CFG)
