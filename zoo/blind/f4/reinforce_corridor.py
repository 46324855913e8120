import random
import torch
import torch.nn as nn

random.seed(3)
torch.manual_seed(3)


class Corridor:
    """Walk to the right end; every move may drain the battery."""

    def __init__(self, length=7, p_dead=0.012):
        self.length, self.p_dead = length, p_dead

    def reset(self):
        self.pos = random.randint(0, 2)
        return self._obs()

    def _obs(self):
        v = torch.zeros(self.length + 1)
        v[self.pos] = 1.0
        return v

    def step(self, a):
        self.pos = max(0, self.pos + (1 if a == 1 else -1))
        if self.pos >= self.length:
            return self._obs(), 5.0, True
        if random.random() < self.p_dead:
            return self._obs(), -1.0, True
        return self._obs(), -0.1, False


env = Corridor()
policy = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 2))
opt = torch.optim.Adam(policy.parameters(), lr=5e-3)
history = []
for episode in range(260):
    obs, done, logps, rewards = env.reset(), False, [], []
    while not done and len(rewards) < 60:
        logits = policy(obs)
        probs = torch.softmax(logits, -1)
        a = torch.multinomial(probs.nan_to_num(0.5), 1).item()
        logps.append(torch.log_softmax(logits, -1)[a])
        obs, r, done = env.step(a)
        rewards.append(r)
    returns, R = [], 0.0
    for r in reversed(rewards):
        R = r + 0.98 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    adv = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -(torch.stack(logps) * adv).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(sum(rewards))
    if episode % 20 == 0:
        print(f"ep {episode} len {len(rewards)} loss {loss.item():.3f} avg return {sum(history[-20:]) / len(history[-20:]):.3f}")
