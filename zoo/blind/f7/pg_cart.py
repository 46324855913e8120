"""REINFORCE with reward-to-go on a small balancing task."""
import math
import random
import torch
import torch.nn as nn


class Pole:
    """Discrete-time inverted pendulum on a cart, five-number state."""

    def __init__(self, rng, limit=200):
        self.rng, self.limit = rng, limit

    def reset(self):
        self.s = [self.rng.uniform(-0.05, 0.05) for _ in range(4)]
        self.t = 0
        return list(self.s)

    def step(self, action):
        x, v, th, w = self.s
        force = 10.0 if action == 1 else -10.0
        tmp = (force + 0.05 * w * w * math.sin(th)) / 1.1
        acc_th = (9.8 * math.sin(th) - math.cos(th) * tmp) / (0.5 * (4 / 3 - 0.1 * math.cos(th) ** 2 / 1.1))
        acc_x = tmp - 0.05 * acc_th * math.cos(th) / 1.1
        self.s = [x + 0.02 * v, v + 0.02 * acc_x, th + 0.02 * w, w + 0.02 * acc_th]
        self.t += 1
        done = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.21 or self.t >= self.limit
        return list(self.s), done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, s):
        return torch.log_softmax(self.net(s), -1)


def rollout(env, policy, rng):
    states, actions = [], []
    s, done = env.reset(), False
    while not done:
        with torch.no_grad():
            p1 = policy(torch.tensor(s))[1].exp().item()
        a = 1 if rng.random() < p1 else 0
        states.append(s)
        actions.append(a)
        s, done = env.step(a)
    return states, actions


def collect(env, policy, rng, min_steps):
    episodes, total = [], 0
    while total < min_steps:
        episodes.append(rollout(env, policy, rng))
        total += len(episodes[-1][0])
    return episodes


def main(updates=220, min_steps=110):
    torch.manual_seed(0)
    rng = random.Random(0)
    env, policy = Pole(rng), Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=1.5e-3)
    avg = 20.0
    for it in range(updates):
        eps = collect(env, policy, rng, min_steps)
        returns = torch.tensor([float(len(e[0])) for e in eps])
        adv = (returns - returns.mean()) / (returns.std() + 1e-8)
        loss = 0.0
        for (states, actions), a in zip(eps, adv):
            logp = policy(torch.tensor(states)).gather(1, torch.tensor(actions).unsqueeze(1))
            loss = loss - a * logp.sum()
        loss = loss / sum(len(e[0]) for e in eps)
        opt.zero_grad()
        loss.backward()
        opt.step()
        avg = 0.95 * avg + 0.05 * returns.mean().item()
        if it % 10 == 0:
            print(f"update {it:3d} episodes {len(eps):2d} return {avg:.1f} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
