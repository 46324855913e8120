"""Contextual bandit with an actor-critic and running reward normalisation."""
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

ARMS, CTX = 4, 6


class RewardScale:
    """Standardise by the rewards of the most recent rounds."""

    def __init__(self, rounds=6):
        self.recent = deque(maxlen=rounds)

    def __call__(self, r):
        self.recent.append(r)
        pool = torch.cat(list(self.recent))
        return (r - pool.mean()) / pool.std()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(CTX, 32), nn.Tanh())
        self.pi = nn.Linear(32, ARMS)
        self.v = nn.Linear(32, 1)

    def forward(self, x):
        h = self.body(x)
        return torch.log_softmax(self.pi(h), -1), self.v(h).squeeze(-1)


def pull(arm, x):
    """The right arm is the same for half of the context space."""
    best = (x[:, 0] > 0).long()
    return (arm == best).float()


def main():
    torch.manual_seed(16)
    g = torch.Generator().manual_seed(16)
    net = ActorCritic()
    opt = torch.optim.SGD(net.parameters(), lr=0.15, momentum=0.5)
    scale = RewardScale()
    for step in range(600):
        x = torch.randn(16, CTX, generator=g)
        x[:, 0] = x[:, 0] + 0.5 * torch.sign(x[:, 0])
        logp, value = net(x)
        arm = torch.multinomial(logp.exp().detach(), 1, generator=g).squeeze(1)
        raw = pull(arm, x)
        r = scale(raw)
        adv = r - value.detach()
        actor = -(adv * logp.gather(1, arm[:, None]).squeeze(1)).mean()
        critic = F.mse_loss(value, r)
        loss = actor + 0.5 * critic
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step:4d} loss {loss.item():+.4f} reward {raw.mean().item():.3f}")
        if not torch.isfinite(net.pi.weight).all():
            print(f"step {step} loss {loss.item()} reward {raw.mean().item():.3f}")
            break


if __name__ == "__main__":
    main()
