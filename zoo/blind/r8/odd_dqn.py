"""Double DQN on a windy corridor: the temporal-difference loss rises for a long time while the return gets better (values grow)."""
import copy
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(22)
random.seed(22)
SIZE, LIMIT = 9, 40


def start():
    return (random.randrange(3), random.randrange(SIZE))


def step(s, a):
    r, c = s
    if a == 0: r += 1
    elif a == 1: r -= 1
    elif a == 2: c += 1
    else: c -= 1
    if random.random() < 0.1:
        c += random.choice([-1, 1])
    r, c = min(max(r, 0), SIZE - 1), min(max(c, 0), SIZE - 1)
    if r == 4 and c not in (2, 6):
        r = s[0]                                       # a wall with two gaps
    if (r, c) == (8, 4):
        return (r, c), 10.0, True
    return (r, c), -0.1, False


def code(states):
    s = torch.tensor(states)
    return torch.cat([F.one_hot(s[:, 0], SIZE), F.one_hot(s[:, 1], SIZE)], 1).float()


q = nn.Sequential(nn.Linear(2 * SIZE, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
frozen = copy.deepcopy(q)
opt = torch.optim.Adam(q.parameters(), lr=2e-3)
memory, returns, losses, steps = [], [], [], 0
for episode in range(1, 141):
    s, total = start(), 0.0
    eps = max(0.05, 1 - episode / 70)
    for t in range(LIMIT):
        with torch.no_grad():
            a = random.randrange(4) if random.random() < eps else int(q(code([s])).argmax())
        n, r, end = step(s, a)
        memory.append((s, a, r, n, end))               # the time limit is not an end of the task
        s, total, steps = n, total + r, steps + 1
        if len(memory) > 300 and steps % 2 == 0:
            bs, ba, br, bn, be = zip(*random.sample(memory, 64))
            with torch.no_grad():
                best = q(code(bn)).argmax(1, keepdim=True)
                y = torch.tensor(br) + 0.97 * (1 - torch.tensor(be).float()) * frozen(code(bn)).gather(1, best).squeeze(1)
            value = q(code(bs)).gather(1, torch.tensor(ba)[:, None]).squeeze(1)
            loss = F.smooth_l1_loss(value, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
            if steps % 200 == 0:
                frozen.load_state_dict(q.state_dict())
        if end:
            break
    returns.append(total)
    if episode % 20 == 0:
        print(f"episode {episode:4d} eps {eps:.2f} mean return {sum(returns[-20:]) / 20:6.2f} TD loss {sum(losses[-200:]) / max(1, len(losses[-200:])):.4f} "
              f"mean value {q(code([(0, 4), (2, 2), (5, 5)])).max(1).values.mean().item():.2f}")
