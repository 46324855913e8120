import random
from collections import deque
import torch
import torch.nn as nn

random.seed(2)
torch.manual_seed(2)
N_STATES, N_ACTIONS = 6, 4
BEST = [1, 3, 0, 2, 1, 3]


class Env:
    """contextual task: one action per state pays"""

    def reset(self):
        self.s = random.randrange(N_STATES)
        return self.s

    def step(self, a):
        r = 1.0 if a == BEST[self.s] else -0.2
        return r + random.gauss(0, 0.05)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(N_STATES, 32)
        self.fc = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, N_ACTIONS))

    def forward(self, s):
        return torch.softmax(self.fc(self.emb(s)), dim=-1)


env, policy = Env(), Policy()
buffer = deque(maxlen=4000)
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)

avg = 0.0
for update in range(300):
    with torch.no_grad():
        for _ in range(8):
            s = env.reset()
            probs = policy(torch.tensor(s))
            a = torch.multinomial(probs, 1).item()
            r = env.step(a)
            buffer.append((s, a, r))
            avg = 0.98 * avg + 0.02 * r
    sample = random.sample(buffer, min(len(buffer), 64))
    s, a, r = zip(*sample)
    s, a, r = torch.tensor(s), torch.tensor(a), torch.tensor(r)
    pi = policy(s).gather(1, a[:, None]).squeeze(1)
    logp = torch.log(pi)
    loss = -(logp * (r - avg)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 25 == 0:
        print(f"update {update:3d} loss {loss.item():8.4f} avg reward {avg:.3f}")
