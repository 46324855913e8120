"""Policy gradient on a one-dimensional landing task. Returns are large and noisy."""
import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

rng = np.random.default_rng(3)
torch.manual_seed(3)


def episode(policy, log_std):
    h, v = 10.0 + rng.normal(), 0.0
    logp, rewards = [], []
    for t in range(15):
        mean = policy(torch.tensor([h / 10, v], dtype=torch.float32))
        dist = Normal(mean, log_std.clamp(-3, 1).exp())
        a = dist.sample()
        logp.append(dist.log_prob(a).sum())
        v = v + float(a.clamp(-2, 2)) * 0.5 - 0.1
        h = h + v
        if h <= 0:
            rewards.append(500.0 - 400.0 * v * v)
            break
        rewards.append(-5.0 * h)
    return logp, rewards


policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
log_std = nn.Parameter(torch.zeros(1))
opt = torch.optim.Adam(list(policy.parameters()) + [log_std], lr=8e-3)

for it in range(48):
    all_logp, all_ret, totals = [], [], []
    for _ in range(6):
        logp, rewards = episode(policy, log_std)
        ret = np.cumsum(np.array(rewards)[::-1])[::-1].copy()
        all_logp += logp
        all_ret.append(ret)
        totals.append(sum(rewards))
    R = torch.tensor(np.concatenate(all_ret), dtype=torch.float32)
    adv = (R - R.mean()) / (R.std() + 1e-6)
    loss = -(torch.stack(all_logp) * adv).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([*policy.parameters(), log_std], 1.0)
    opt.step()
    if it % 5 == 0:
        print(f"iter {it:2d} return {np.mean(totals):9.1f} loss {loss.item():+.4f}")
