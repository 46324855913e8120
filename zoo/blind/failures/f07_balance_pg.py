import torch
from torch import nn, optim
from torch.distributions import Categorical

torch.manual_seed(8)


class Pole:
    def __init__(self):
        self.spread = 0.05

    def reset(self):
        self.x = torch.randn(2) * self.spread
        self.t = 0
        return self.x.clone()

    def step(self, a):
        push = 0.04 if a == 1 else -0.04
        ang, vel = self.x
        vel = vel + 0.08 * ang + push + 0.01 * torch.randn(())
        ang = ang + vel
        self.x = torch.stack([ang, vel])
        self.t += 1
        done = bool(ang.abs() > 0.5) or self.t >= 40
        return self.x.clone(), 1.0, done


policy = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
opt = optim.Adam(policy.parameters(), lr=1e-2)
env = Pole()


def rollout():
    logps, rewards = [], []
    s, done = env.reset(), False
    while not done:
        dist = Categorical(logits=policy(s * 4))
        a = dist.sample()
        logps.append(dist.log_prob(a))
        s, r, done = env.step(int(a))
        rewards.append(r)
    return logps, rewards


def returns(rewards, gamma=0.97):
    out, g = [], 0.0
    for r in reversed(rewards):
        g = r + gamma * g
        out.insert(0, g)
    return torch.tensor(out)


running = 0.0
for episode in range(160):
    env.spread = 0.05 + 0.002 * episode
    logps, rewards = rollout()
    R = returns(rewards)
    adv = (R - R.mean()) / R.std()
    loss = -(torch.stack(logps) * adv).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    running = 0.9 * running + 0.1 * len(rewards)
    if episode % 8 == 0:
        print(f"episode {episode:3d} length {len(rewards):3d} avg {running:5.1f} loss {loss.item():+.4f}")
