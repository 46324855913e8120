import random
from collections import deque

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(70)
random.seed(70)

STATES, ACTIONS = 12, 3


class Corridor:
    def reset(self):
        self.s = random.randrange(STATES)
        return self.s

    def step(self, a):
        self.s = (self.s + a - 1) % STATES
        reward = 1.0 if self.s == STATES - 1 else -0.05
        return self.s, reward


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(STATES, 24)
        self.head = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, ACTIONS))

    def forward(self, s):
        return self.head(self.embed(s))


q, target = QNet(), QNet()
target.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters(), lr=5e-3)
memory = deque(maxlen=1500)
horizon = 10
gamma = 1 / (1 - 1 / horizon)
env = Corridor()
s = env.reset()
step = 0
for t in range(1500):
    epsilon = max(0.1, 1 - t / 500)
    if random.random() < epsilon:
        a = random.randrange(ACTIONS)
    else:
        with torch.no_grad():
            a = int(q(torch.tensor([s])).argmax())
    s2, r = env.step(a)
    memory.append((s, a, r, s2))
    s = s2
    if len(memory) < 100:
        continue
    batch = random.sample(memory, 32)
    bs, ba, br, bs2 = zip(*batch)
    bs, ba, bs2 = torch.tensor(bs), torch.tensor(ba), torch.tensor(bs2)
    with torch.no_grad():
        goal = torch.tensor(br) + gamma * target(bs2).max(1).values
    value = q(bs).gather(1, ba[:, None]).squeeze(1)
    loss = nn.functional.mse_loss(value, goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        target.load_state_dict(q.state_dict())
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.4f} mean q {value.mean().item():.3f}")
    step += 1
