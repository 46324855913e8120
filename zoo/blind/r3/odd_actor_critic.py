import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(2)
np.random.seed(2)


class Catch:
    """A ball falls through a 6x5 field; move the paddle left, stay or right."""

    def reset(self):
        self.row, self.col, self.paddle = 0, np.random.randint(5), np.random.randint(5)
        return self.obs()

    def obs(self):
        v = np.zeros(16, dtype=np.float32)
        v[self.row], v[6 + self.col], v[11 + self.paddle] = 1, 1, 1
        return v

    def step(self, a):
        self.paddle = min(4, max(0, self.paddle + a - 1))
        self.row += 1
        done = self.row == 5
        return self.obs(), (1.0 if self.paddle == self.col else -1.0) if done else 0.0, done


actor = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 3))
critic = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
opt_a = torch.optim.Adam(actor.parameters(), lr=1.5e-2)
opt_c = torch.optim.Adam(critic.parameters(), lr=1.5e-2)
envs = [Catch() for _ in range(16)]

history = []
for it in range(1, 111):
    obs, logps, ents, rewards = [], [], [], []
    state = np.stack([e.reset() for e in envs])
    for _ in range(5):
        s = torch.from_numpy(state)
        dist = Categorical(logits=actor(s))
        a = dist.sample()
        nxt, r, _ = zip(*[e.step(k) for e, k in zip(envs, a.tolist())])
        obs.append(s), logps.append(dist.log_prob(a)), ents.append(dist.entropy()), rewards.append(torch.tensor(r))
        state = np.stack(nxt)
    ret = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    value = critic(torch.stack(obs)).squeeze(-1)
    adv = (ret - value).detach()
    policy_loss = -(torch.stack(logps) * adv).mean() - 0.01 * torch.stack(ents).mean()
    value_loss = (ret - value).pow(2).mean()
    opt_a.zero_grad(), opt_c.zero_grad()
    policy_loss.backward()
    value_loss.backward()
    opt_a.step(), opt_c.step()
    history.append(ret[0].mean().item())
    if it % 10 == 0:
        print(f"iter {it:3d} policy loss {policy_loss.item():+.4f} value loss {value_loss.item():.4f} mean return {np.mean(history[-10:]):+.3f}")
