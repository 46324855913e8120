# Q-learning from a fixed log of random walks; Polyak-averaged target; the loss grows with the values.
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(1)
torch.manual_seed(1)
LENGTH, GOAL, GAMMA = 12, 10.0, 0.97


def move(pos, action):
    pos = int(np.clip(pos + (1 if action else -1), 0, LENGTH - 1))
    return pos, (GOAL if pos == LENGTH - 1 else -0.1), pos == LENGTH - 1


log = []
for _ in range(4000):
    s, a = int(rng.integers(LENGTH - 1)), int(rng.integers(2))
    s2, r, d = move(s, a)
    log.append((s, a, r, s2, d))
S, A, R, S2, D = (torch.tensor(np.array(c)) for c in zip(*log))
R, D = R.float(), D.float()


def encode(s):
    return nn.functional.one_hot(s, LENGTH).float()


def make():
    return nn.Sequential(nn.Linear(LENGTH, 48), nn.ReLU(), nn.Linear(48, 2))


q, slow = make(), make()
slow.load_state_dict(q.state_dict())
for p in slow.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(q.parameters(), lr=5e-3)


def walk():
    s, total = 0, 0.0
    for _ in range(40):
        with torch.no_grad():
            a = q(encode(torch.tensor([s]))).argmax().item()
        s, r, done = move(s, a)
        total += r
        if done:
            break
    return total


for step in range(601):
    b = torch.randint(len(S), (64,))
    best = q(encode(S2[b])).argmax(1, keepdim=True)
    y = R[b] + GAMMA * (1 - D[b]) * slow(encode(S2[b])).gather(1, best)[:, 0]
    value = q(encode(S[b])).gather(1, A[b][:, None])[:, 0]
    loss = nn.functional.mse_loss(value, y.detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for ps, p in zip(slow.parameters(), q.parameters()):
            ps.lerp_(p, 0.03)
    if step % 100 == 0:
        print(f"step {step} td loss {loss.item():.4f} mean value {value.mean().item():.2f} greedy return {walk():.2f}")
