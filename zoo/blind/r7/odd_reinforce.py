"""REINFORCE with a baseline on a small bandit with contexts: the loss value means nothing, the reward counts."""
import torch
import torch.nn as nn

torch.manual_seed(12)
torch.set_num_threads(1)

CONTEXT, ARMS = 6, 5
secret = torch.randn(CONTEXT, ARMS)


def contexts(n):
    return torch.randn(n, CONTEXT)


def pull(ctx, arm):
    """one if the arm is the best for this context, noise otherwise"""
    best = (ctx @ secret).argmax(1)
    hit = (arm == best).float()
    return torch.bernoulli(0.1 + 0.8 * hit)


policy = nn.Sequential(nn.Linear(CONTEXT, 64), nn.Tanh(), nn.Linear(64, ARMS))
baseline = nn.Sequential(nn.Linear(CONTEXT, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam(policy.parameters(), lr=5e-3)
opt_b = torch.optim.Adam(baseline.parameters(), lr=5e-3)


@torch.no_grad()
def greedy_reward(n=2000):
    ctx = contexts(n)
    return (policy(ctx).argmax(1) == (ctx @ secret).argmax(1)).float().mean().item()


for it in range(500):
    ctx = contexts(128)
    dist = torch.distributions.Categorical(logits=policy(ctx))
    arm = dist.sample()
    reward = pull(ctx, arm)
    value = baseline(ctx).squeeze(1)
    advantage = (reward - value).detach()
    # maximise reward: the sign of this quantity goes up and down around zero
    loss = -(dist.log_prob(arm) * advantage).mean() - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    loss_b = (value - reward).pow(2).mean()
    opt_b.zero_grad()
    loss_b.backward()
    opt_b.step()
    if (it + 1) % 50 == 0:
        print(f"iter {it + 1} policy loss {loss.item():+.4f} baseline loss {loss_b.item():.4f} "
              f"mean reward {reward.mean().item():.3f} greedy hits {greedy_reward():.3f}")

print(f"final greedy hit rate {greedy_reward(5000):.4f} chance {1 / ARMS:.3f}")
