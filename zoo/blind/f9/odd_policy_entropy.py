import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(206)


class Bandit:
    def __init__(self, arms=8, contexts=5):
        self.table = torch.rand(contexts, arms)

    def pull(self, context, arm):
        return (torch.rand(len(arm)) < self.table[context, arm]).float()


def entropy(p):
    return -(p * torch.log(p.clamp_min(1e-12))).sum(1)


def train():
    bandit = Bandit()
    policy = nn.Sequential(nn.Embedding(5, 16), nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8))
    opt = torch.optim.Adam(policy.parameters(), lr=2e-2)
    baseline = torch.zeros(5)
    for step in range(800):
        context = torch.randint(0, 5, (64,))
        p = torch.softmax(8.0 * policy(context), dim=1)
        with torch.no_grad():
            arm = torch.multinomial(p, 1).squeeze(1)
            reward = bandit.pull(context, arm)
        chosen = p.gather(1, arm[:, None]).squeeze(1)
        advantage = reward - baseline[context]
        loss = -(advantage * torch.log(chosen + 1e-8)).mean() - 0.01 * entropy(p).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        for c in range(5):
            if (context == c).any():
                baseline[c] += 0.05 * (reward[context == c].mean() - baseline[c])
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.4f} reward {reward.mean().item():.3f} smallest {p.min().item():.1e}")


train()
