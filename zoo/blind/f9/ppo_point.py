import torch
from torch import nn
from torch.distributions import Normal

torch.set_num_threads(1)
torch.manual_seed(61)


class PointWorld:
    def __init__(self, n=32):
        self.n = n

    def reset(self, spread):
        self.pos = torch.randn(self.n, 2)
        self.goal = spread * torch.randn(self.n, 2)
        return torch.cat([self.pos, self.goal], 1)

    def step(self, action):
        self.pos = self.pos + 0.2 * action.clamp(-2, 2)
        reward = -(self.pos - self.goal).norm(dim=1)
        return torch.cat([self.pos, self.goal], 1), reward


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 2))
        self.value = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 1))
        self.log_std = nn.Parameter(torch.zeros(2))

    def dist(self, obs):
        return Normal(self.mean(obs), self.log_std.exp())


def rollout(env, policy, spread, length=16, gamma=0.98):
    obs_list, act_list, logp_list, rew_list = [], [], [], []
    obs = env.reset(spread)
    with torch.no_grad():
        for _ in range(length):
            dist = policy.dist(obs)
            action = dist.sample()
            obs_list.append(obs)
            act_list.append(action)
            logp_list.append(dist.log_prob(action).sum(1))
            obs, reward = env.step(action)
            rew_list.append(reward)
    returns, acc = [], torch.zeros(env.n)
    for reward in reversed(rew_list):
        acc = reward + gamma * acc
        returns.append(acc)
    returns.reverse()
    return torch.cat(obs_list), torch.cat(act_list), torch.cat(logp_list), torch.cat(returns)


env, policy = PointWorld(), Policy()
opt = torch.optim.SGD(policy.parameters(), lr=3e-2, momentum=0.9)
for update in range(60):
    obs, act, old_logp, ret = rollout(env, policy, 0.3 + 0.5 * update)
    for epoch in range(10):
        value = policy.value(obs).squeeze(1)
        advantage = (ret - value).detach()
        ratio = torch.exp(policy.dist(obs).log_prob(act).sum(1) - old_logp)
        gain = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        loss = -gain.mean() + 0.5 * (value - ret).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"update {update} return {ret.mean().item():.3f} loss {loss.item():.4f} std {policy.log_std.exp().mean().item():.3f}")
