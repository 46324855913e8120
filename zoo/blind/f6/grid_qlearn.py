import random
import torch
import torch.nn as nn

torch.manual_seed(14)
random.seed(14)
GOAL, LIMIT, STEPS, GAMMA = 15, 30, 450, 0.95


class Track:
    def reset(self):
        self.pos, self.time = 0, 0
        return self.view()

    def view(self):
        return torch.tensor([self.pos / GOAL, self.time / LIMIT])

    def move(self, action):
        self.pos = max(-5, self.pos + (1 if action == 1 else -1))
        self.time += 1
        gap = torch.tensor(float(abs(GOAL - self.pos)))
        reward = 1.0 - 0.3 * torch.log(gap)
        done = self.pos == GOAL or self.time >= LIMIT
        return self.view(), reward, done


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))

    def forward(self, s):
        return self.net(s)


def sample(memory, n):
    pick = random.sample(memory, n)
    s, a, r, s2, d = zip(*pick)
    return torch.stack(s), torch.tensor(a), torch.stack(r), torch.stack(s2), torch.tensor(d).float()


env, q, target = Track(), QNet(), QNet()
target.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters(), lr=1e-3)
memory, losses = [], []
state = env.reset()
for step in range(STEPS):
    explore = max(0.1, 1.0 - step / 250)
    for _ in range(6):
        with torch.no_grad():
            greedy = int(q(state).argmax())
        action = random.randrange(2) if random.random() < explore else greedy
        after, reward, done = env.move(action)
        memory.append((state, action, reward, after, done))
        state = env.reset() if done else after
    if len(memory) < 64:
        continue
    s, a, r, s2, d = sample(memory, 64)
    with torch.no_grad():
        goal = r + GAMMA * (1 - d) * target(s2).max(1).values
    loss = ((q(s).gather(1, a[:, None])[:, 0] - goal) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    if step % 25 == 0:
        target.load_state_dict(q.state_dict())
        print(f"step {step} loss {loss.item():.4f} memory {len(memory)}")
print("final", losses[-1])
