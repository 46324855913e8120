import torch
from torch import nn
from torch.distributions import Categorical


class Env:
    def __init__(self, n_arms=4, dim=6, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.W = torch.randn(dim, n_arms, generator=g)
        self.g = g
        self.dim = dim

    def observe(self, n):
        c = torch.randn(4, self.dim, generator=torch.Generator().manual_seed(77)) * 2
        pick = torch.randint(0, 4, (n,), generator=self.g)
        return c[pick] + 0.05 * torch.randn(n, self.dim, generator=self.g)

    def reward(self, ctx, action):
        return (action == (ctx @ self.W).argmax(1)).float()


def standardise(r):
    return (r - r.mean()) / r.std()


class Agent:
    def __init__(self, env, lr):
        self.env = env
        self.policy = nn.Sequential(nn.Linear(env.dim, 32), nn.Tanh(), nn.Linear(32, 4))
        self.opt = torch.optim.Adam(self.policy.parameters(), lr=lr)

    def update(self, batch):
        ctx = self.env.observe(batch)
        dist = Categorical(logits=self.policy(ctx))
        action = dist.sample()
        r = self.env.reward(ctx, action)
        adv = standardise(r)
        loss = -(dist.log_prob(action) * adv).mean() - 0.002 * dist.entropy().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item(), r.mean().item()


if __name__ == "__main__":
    torch.manual_seed(4)
    agent = Agent(Env(), lr=2e-3)
    mean_r = 0.0
    for it in range(400):
        try:
            loss, r = agent.update(32)
        except ValueError as e:
            print("stopped at iteration", it, "-", str(e)[:80])
            break
        mean_r = 0.9 * mean_r + 0.1 * r
        if it % 25 == 0:
            print(f"iter {it} loss {loss:.4f} reward {mean_r:.3f}")
