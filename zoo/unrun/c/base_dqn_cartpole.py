# Double DQN on CartPole-v1, single file
import copy
import random

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 1
TOTAL_STEPS = 150_000
LEARN_START, TRAIN_EVERY, TARGET_EVERY, EVAL_EVERY = 5_000, 4, 1_000, 10_000
BATCH, GAMMA, LR, CAPACITY = 128, 0.99, 5e-4, 50_000
EPS_START, EPS_END, EPS_STEPS = 1.0, 0.05, 50_000

random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class QNetwork(nn.Module):
    def __init__(self, obs_dim, n_actions):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(obs_dim, 128), nn.ReLU(),
            nn.Linear(128, 128), nn.ReLU(),
            nn.Linear(128, n_actions),
        )

    def forward(self, x):
        return self.net(x)


class ReplayBuffer:
    def __init__(self, capacity, obs_dim):
        self.capacity, self.pos, self.size = capacity, 0, 0
        self.obs = np.zeros((capacity, obs_dim), dtype=np.float32)
        self.next_obs = np.zeros((capacity, obs_dim), dtype=np.float32)
        self.actions = np.zeros(capacity, dtype=np.int64)
        self.rewards = np.zeros(capacity, dtype=np.float32)
        self.dones = np.zeros(capacity, dtype=np.float32)

    def add(self, obs, action, reward, next_obs, done):
        i = self.pos
        self.obs[i], self.actions[i], self.rewards[i] = obs, action, reward
        self.next_obs[i], self.dones[i] = next_obs, done
        self.pos = (self.pos + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def sample(self, n):
        idx = np.random.randint(0, self.size, n)
        arrays = (self.obs, self.actions, self.rewards, self.next_obs, self.dones)
        return [torch.as_tensor(a[idx], device=device) for a in arrays]


def greedy(net, obs):
    with torch.no_grad():
        return net(torch.as_tensor(obs, dtype=torch.float32, device=device).unsqueeze(0)).argmax(1).item()


def evaluate(net, env, episodes=10):
    returns = []
    for ep in range(episodes):
        obs, _ = env.reset(seed=10_000 + ep)
        done, total = False, 0.0
        while not done:
            obs, reward, terminated, truncated, _ = env.step(greedy(net, obs))
            done = terminated or truncated
            total += reward
        returns.append(total)
    return float(np.mean(returns))


env, eval_env = gym.make("CartPole-v1"), gym.make("CartPole-v1")
env.action_space.seed(SEED)
obs_dim, n_actions = env.observation_space.shape[0], env.action_space.n
q_net = QNetwork(obs_dim, n_actions).to(device)
target_net = copy.deepcopy(q_net)
optimizer = torch.optim.Adam(q_net.parameters(), lr=LR)
buffer = ReplayBuffer(CAPACITY, obs_dim)

obs, _ = env.reset(seed=SEED)
episode_return, recent, best_eval = 0.0, [], -float("inf")

for step in range(1, TOTAL_STEPS + 1):
    eps = max(EPS_END, EPS_START + (EPS_END - EPS_START) * step / EPS_STEPS)
    action = env.action_space.sample() if random.random() < eps else greedy(q_net, obs)
    next_obs, reward, terminated, truncated, _ = env.step(action)
    buffer.add(obs, action, reward, next_obs, terminated)
    obs = next_obs
    episode_return += reward
    if terminated or truncated:
        recent.append(episode_return)
        episode_return = 0.0
        obs, _ = env.reset()

    if step >= LEARN_START and step % TRAIN_EVERY == 0:
        b_obs, b_act, b_rew, b_next, b_done = buffer.sample(BATCH)
        with torch.no_grad():
            next_action = q_net(b_next).argmax(dim=1, keepdim=True)
            next_value = target_net(b_next).gather(1, next_action).squeeze(1)
            td_target = b_rew + GAMMA * (1.0 - b_done) * next_value
        q_value = q_net(b_obs).gather(1, b_act.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(q_value, td_target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(q_net.parameters(), 10.0)
        optimizer.step()

    if step % TARGET_EVERY == 0:
        target_net.load_state_dict(q_net.state_dict())

    if step % EVAL_EVERY == 0:
        score = evaluate(q_net, eval_env)
        print(f"step {step} eps {eps:.2f} train return {np.mean(recent[-20:]):.1f} eval return {score:.1f}")
        if score > best_eval:
            best_eval = score
            torch.save(q_net.state_dict(), "dqn_cartpole.pt")
