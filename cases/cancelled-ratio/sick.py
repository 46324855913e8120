"""The old log-probabilities of a clipped policy gradient are computed again, with a gradient."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
rewards = torch.eye(6)[torch.arange(12) % 6]  # of each action, by state
states = torch.eye(12)

policy = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 6))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)

for update in range(60):
    with torch.no_grad():
        seen = torch.randint(12, (128,))
        actions = Categorical(logits=policy(states[seen])).sample()
        old_logp = Categorical(logits=policy(states[seen])).log_prob(actions)
        reward = rewards[seen, actions]
        advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
    for _ in range(4):
        new = Categorical(logits=policy(states[seen]))
        logp = new.log_prob(actions)
        old_logp = Categorical(logits=policy(states[seen])).log_prob(actions)
        ratio = (logp - old_logp).exp()
        clipped = ratio.clamp(0.8, 1.2)
        gain = torch.minimum(ratio * advantage, clipped * advantage).mean()
        loss = -gain - 0.01 * new.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if update % 10 == 9:
        print(f"update {update + 1}: mean return {reward.mean():.3f}")
