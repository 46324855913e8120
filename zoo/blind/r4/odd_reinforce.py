"""REINFORCE with whitened returns: the surrogate loss is about zero all along, what counts is the return."""
import torch
import torch.nn as nn

torch.manual_seed(0)
N, T = 48, 15


def rollout(policy):
    """a cart on a line is to be kept near zero; force -1, 0 or +1"""
    pos = torch.rand(N) * 4 - 2
    vel = torch.zeros(N)
    logps, rewards = [], []
    for _ in range(T):
        dist = torch.distributions.Categorical(logits=policy(torch.stack([pos, vel], 1)))
        a = dist.sample()
        logps.append(dist.log_prob(a))
        vel = 0.8 * vel + 0.5 * (a - 1).float()
        pos = pos + 0.5 * vel
        rewards.append(-pos.abs())
    return torch.stack(logps), torch.stack(rewards)


policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 3))
opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
for it in range(1, 121):
    logp, rew = rollout(policy)
    ret = rew.flip(0).cumsum(0).flip(0)
    ret = (ret - ret.mean(1, keepdim=True)) / (ret.std(1, keepdim=True) + 1e-6)
    objective = (logp * ret).mean()
    (-objective).backward()
    opt.step()
    opt.zero_grad()
    if it % 15 == 0:
        print(f"iter {it:3d} surrogate {-objective.item():+.4f} mean return {rew.sum(0).mean():.2f}")
