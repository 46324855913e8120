"""REINFORCE with a running baseline on a contextual bandit with 5 arms. The surrogate loss is meaningless as a progress
figure (it hovers around 0, is often negative and may rise). Goal: mean reward above 0.85 of the best possible one."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(7)
theta = torch.randn(5, 6)


def reward(ctx, arm):
    p = torch.sigmoid((ctx * theta[arm]).sum(1))
    return torch.bernoulli(p), p


policy = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 5))
opt = torch.optim.Adam(policy.parameters(), lr=5e-3)
baseline = 0.5
for it in range(1, 1501):
    ctx = torch.randn(64, 6)
    dist = torch.distributions.Categorical(logits=policy(ctx))
    arm = dist.sample()
    r, _ = reward(ctx, arm)
    loss = -((r - baseline) * dist.log_prob(arm)).mean() - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    baseline = 0.95 * baseline + 0.05 * r.mean().item()
    if it % 150 == 0:
        print(f"iter {it} surrogate {loss.item():+.4f} entropy {dist.entropy().mean().item():.3f} running reward {baseline:.3f}")
with torch.no_grad():
    ctx = torch.randn(5000, 6)
    pick = policy(ctx).argmax(1)
    got = reward(ctx, pick)[1].mean().item()
    best = torch.sigmoid(ctx @ theta.t()).max(1).values.mean().item()
print(f"greedy expected reward {got:.3f}, best possible {best:.3f}, ratio {got / best:.3f}")
