import torch
import torch.nn as nn

torch.manual_seed(6)
EPISODES, HORIZON, STATES, ACTIONS, STEPS = 16, 8, 6, 3, 330


class Corridor:
    """Every state has one useful action; the episode return counts them."""

    def __init__(self):
        gen = torch.Generator().manual_seed(1)
        self.good = torch.randint(0, ACTIONS, (STATES,), generator=gen)

    def reset(self, n):
        self.state = torch.randint(0, STATES, (n,))
        return self.state

    def step(self, action):
        reward = (action == self.good[self.state]).float()
        self.state = torch.randint(0, STATES, self.state.shape)
        return self.state, reward


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(STATES, 16)
        self.net = nn.Sequential(nn.Tanh(), nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, ACTIONS))

    def forward(self, s):
        return torch.distributions.Categorical(logits=self.net(self.emb(s)), validate_args=False)


env, policy = Corridor(), Policy()
opt = torch.optim.Adam(policy.parameters(), lr=2e-3)
losses = []
for step in range(STEPS):
    state = env.reset(EPISODES)
    logps, total = [], torch.zeros(EPISODES)
    for _ in range(HORIZON):
        dist = policy(state)
        action = torch.multinomial(dist.probs.detach().nan_to_num(1.0), 1)[:, 0]
        logps.append(dist.logits.gather(1, action[:, None])[:, 0])
        state, reward = env.step(action)
        total = total + reward
    advantage = (total - total.mean()) / total.std()
    loss = -(torch.stack(logps).sum(0) * advantage).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    opt.step()
    losses.append(loss.item())
    if step % 15 == 0:
        print(f"step {step} return {total.mean():.2f} loss {loss.item():.4f}")
print("final", losses[-1])
