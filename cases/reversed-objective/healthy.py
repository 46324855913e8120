"""A policy gradient: rewarded actions become more frequent."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
for step in range(400):
    state = torch.randn(64, 4)
    actions = torch.distributions.Categorical(logits=policy(state))
    action = actions.sample()
    reward = (action == state[:, :3].argmax(1)).float()
    advantage = reward - reward.mean()
    loss = -(actions.log_prob(action) * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(f"step {step}: reward {reward.mean():.3f} loss {loss.item():.4f}")
