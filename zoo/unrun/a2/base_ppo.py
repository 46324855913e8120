"""PPO with GAE on vectorised CartPole environments (gymnasium)."""
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical


@dataclass
class Args:
    env_id: str = "CartPole-v1"
    seed: int = 3
    n_envs: int = 8
    n_steps: int = 128
    updates: int = 200
    epochs: int = 4
    minibatch: int = 256
    lr: float = 2.5e-4
    gamma: float = 0.99
    lam: float = 0.95
    clip: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    target_kl: float = 0.03


def layer(n_in, n_out, gain=np.sqrt(2)):
    lin = nn.Linear(n_in, n_out)
    nn.init.orthogonal_(lin.weight, gain)
    nn.init.zeros_(lin.bias)
    return lin


class ActorCritic(nn.Module):
    def __init__(self, n_obs, n_actions):
        super().__init__()
        self.actor = nn.Sequential(layer(n_obs, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, n_actions, 0.01))
        self.critic = nn.Sequential(layer(n_obs, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, 1, 1.0))

    def value(self, obs):
        return self.critic(obs).squeeze(-1)

    def dist(self, obs):
        return Categorical(logits=self.actor(obs))


class OneEnv:
    """Environment that restarts itself; also returns the last observation before a restart."""

    def __init__(self, env_id, seed):
        self.env = gym.make(env_id)
        self.obs, _ = self.env.reset(seed=seed)
        self.total = 0.0

    def step(self, action):
        obs, reward, terminated, truncated, _ = self.env.step(action)
        self.total += reward
        final, finished = obs, None
        if terminated or truncated:
            finished, self.total = self.total, 0.0
            obs, _ = self.env.reset()
        self.obs = obs
        return reward, terminated, truncated, final, finished


def collect(envs, net, args, device, returns_log):
    shape = (args.n_steps, args.n_envs)
    obs_buf = torch.zeros(shape + (envs[0].obs.shape[0],), device=device)
    act_buf = torch.zeros(shape, dtype=torch.long, device=device)
    logp_buf, val_buf, next_val, rew_buf, done_buf = (torch.zeros(shape, device=device) for _ in range(5))
    for t in range(args.n_steps):
        obs = torch.tensor(np.stack([e.obs for e in envs]), dtype=torch.float32, device=device)
        with torch.no_grad():
            dist = net.dist(obs)
            action = dist.sample()
            obs_buf[t], act_buf[t] = obs, action
            logp_buf[t], val_buf[t] = dist.log_prob(action), net.value(obs)
        finals = []
        for i, e in enumerate(envs):
            reward, terminated, truncated, final, finished = e.step(int(action[i]))
            rew_buf[t, i], done_buf[t, i] = reward, float(terminated or truncated)
            finals.append(final)
            next_val[t, i] = 1.0 - float(terminated)
            if finished is not None:
                returns_log.append(finished)
        with torch.no_grad():
            final_obs = torch.tensor(np.stack(finals), dtype=torch.float32, device=device)
            next_val[t] *= net.value(final_obs)
    adv = torch.zeros(shape, device=device)
    gae = torch.zeros(args.n_envs, device=device)
    for t in reversed(range(args.n_steps)):
        delta = rew_buf[t] + args.gamma * next_val[t] - val_buf[t]
        gae = delta + args.gamma * args.lam * (1.0 - done_buf[t]) * gae
        adv[t] = gae
    returns = adv + val_buf
    return [b.flatten(0, 1) for b in (obs_buf, act_buf, logp_buf, adv, returns)]


def update(net, optimizer, batch, args):
    obs, actions, old_logp, adv, returns = batch
    for _ in range(args.epochs):
        kls = []
        for idx in torch.randperm(len(obs), device=obs.device).split(args.minibatch):
            dist = net.dist(obs[idx])
            log_ratio = dist.log_prob(actions[idx]) - old_logp[idx]
            ratio = log_ratio.exp()
            a = adv[idx]
            a = (a - a.mean()) / (a.std() + 1e-8)
            policy_loss = -torch.min(ratio * a, ratio.clamp(1 - args.clip, 1 + args.clip) * a).mean()
            value_loss = 0.5 * (net.value(obs[idx]) - returns[idx]).pow(2).mean()
            entropy = dist.entropy().mean()
            loss = policy_loss + args.vf_coef * value_loss - args.ent_coef * entropy
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), args.max_grad_norm)
            optimizer.step()
            kls.append(((ratio - 1) - log_ratio).mean().item())
        if np.mean(kls) > args.target_kl:
            break
    return policy_loss.item(), value_loss.item(), entropy.item(), float(np.mean(kls))


def main(args):
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    envs = [OneEnv(args.env_id, args.seed + i) for i in range(args.n_envs)]
    net = ActorCritic(envs[0].obs.shape[0], int(envs[0].env.action_space.n)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=args.lr, eps=1e-5)
    returns_log, best = [], -float("inf")
    for u in range(args.updates):
        for group in optimizer.param_groups:
            group["lr"] = args.lr * (1.0 - u / args.updates)
        batch = collect(envs, net, args, device, returns_log)
        pl, vl, ent, kl = update(net, optimizer, batch, args)
        score = float(np.mean(returns_log[-50:])) if returns_log else 0.0
        if u % 10 == 0:
            print(f"update {u} return {score:.1f} policy {pl:.4f} value {vl:.2f} entropy {ent:.3f} kl {kl:.4f}")
        if len(returns_log) >= 50 and score > best:
            best = score
            torch.save(net.state_dict(), "ppo_best.pt")


if __name__ == "__main__":
    main(Args())
