"""Q-learning with a target network on a windy grid world."""
import copy
import random
from collections import deque

import torch
import torch.nn as nn

SIZE = 5
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]


class Grid:
    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.pos = [self.rng.randrange(SIZE), self.rng.randrange(SIZE)]
        self.t = 0
        return self.obs()

    def obs(self):
        v = torch.zeros(2 * SIZE)
        v[self.pos[0]] = 1
        v[SIZE + self.pos[1]] = 1
        return v

    def step(self, a):
        if self.rng.random() < 0.1:
            a = self.rng.randrange(4)
        self.pos = [min(SIZE - 1, max(0, p + d)) for p, d in zip(self.pos, MOVES[a])]
        self.t += 1
        goal = self.pos == [SIZE - 1, SIZE - 1]
        return self.obs(), 1.0 if goal else 0.02, self.t >= 60


class Foresight:
    """From short-sighted to far-sighted."""
    discount = 0.80

    @classmethod
    def advance(cls):
        cls.discount += 0.03


def main():
    torch.manual_seed(13)
    rng = random.Random(13)
    env = Grid(rng)
    q = nn.Sequential(nn.Linear(2 * SIZE, 48), nn.ReLU(), nn.Linear(48, 4))
    target = copy.deepcopy(q)
    opt = torch.optim.Adam(q.parameters(), lr=5e-3)
    memory = deque(maxlen=2000)
    updates = 0
    s = env.reset()
    for tick in range(1400):
        eps = max(0.1, 1 - tick / 400)
        with torch.no_grad():
            a = rng.randrange(4) if rng.random() < eps else int(q(s).argmax())
        s2, r, over = env.step(a)
        memory.append((s, a, r, s2))
        s = env.reset() if over else s2
        if tick < 200 or tick % 2:
            continue
        batch = rng.sample(memory, 48)
        bs = torch.stack([b[0] for b in batch])
        ba = torch.tensor([b[1] for b in batch])
        br = torch.tensor([b[2] for b in batch])
        bn = torch.stack([b[3] for b in batch])
        with torch.no_grad():
            goal = br + Foresight.discount * target(bn).max(1).values
        est = q(bs).gather(1, ba[:, None]).squeeze(1)
        loss = (est - goal).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        updates += 1
        if updates % 10 == 0:
            target.load_state_dict(q.state_dict())
        if updates % 25 == 0:
            Foresight.advance()
        if updates % 20 == 0:
            print(f"update {updates} td {loss.item():.5f} mean-q {est.mean().item():.3f}")


if __name__ == "__main__":
    main()
