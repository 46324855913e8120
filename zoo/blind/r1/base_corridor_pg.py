# REINFORCE with a baseline on a small windy corridor
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(4)


class Corridor:
    """Start in the middle of 9 cells; cell 8 pays +1, cell 0 pays -1. Action 1 = right, 0 = left, 2 = wait.
    Every step costs 0.02; with probability 0.1 the wind pushes left."""
    size, limit = 9, 30

    def reset(self):
        self.pos, self.t = 4, 0
        return self.obs()

    def obs(self):
        o = torch.zeros(self.size)
        o[self.pos] = 1.0
        return o

    def step(self, a):
        self.t += 1
        move = {0: -1, 1: 1, 2: 0}[a]
        if torch.rand(1).item() < 0.1:
            move = -1
        self.pos = max(0, min(self.size - 1, self.pos + move))
        if self.pos == self.size - 1:
            return self.obs(), 1.0, True
        if self.pos == 0:
            return self.obs(), -1.0, True
        return self.obs(), -0.02, self.t >= self.limit


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(9, 24), nn.Tanh(), nn.Linear(24, 3))

    def forward(self, s):
        return Categorical(logits=self.body(s))


def discounted(rewards, gamma):
    out, running = [], 0.0
    for r in reversed(rewards):
        running = r + gamma * running
        out.append(running)
    out.reverse()
    return out


def train(episodes=160, gamma=0.95, ent_coef=0.01):
    env, pi = Corridor(), Policy()
    opt = torch.optim.Adam(pi.parameters(), lr=0.02)
    history = []
    batch_loss = 0.0
    for ep in range(1, episodes + 1):
        s, done = env.reset(), False
        logps, rewards, ents = [], [], []
        while not done:
            dist = pi(s)
            a = dist.sample()
            logps.append(dist.log_prob(a))
            ents.append(dist.entropy())
            s, r, done = env.step(a.item())
            rewards.append(r)
        history.append(sum(rewards))
        R = torch.tensor(discounted(rewards, gamma))
        adv = R - 0.2
        batch_loss = batch_loss - (torch.stack(logps) * adv).sum() - ent_coef * torch.stack(ents).sum()
        if ep % 4 == 0:
            opt.zero_grad()
            (batch_loss / 4).backward()
            opt.step()
            if ep % 20 == 0:
                print("episode %3d  loss %8.4f  mean return (last 20) %.3f" % (ep, batch_loss.item() / 4, sum(history[-20:]) / 20))
            batch_loss = 0.0
    return sum(history[-30:]) / 30


if __name__ == "__main__":
    print("average return of the last 30 episodes: %.3f" % train())
