"""Double DQN on a small 'courier' grid: fetch the parcel, bring it to the door, walls in between."""
import random
from collections import deque

import numpy as np
import torch
from torch import nn


class CourierEnv:
    """5x5 grid, actions up/down/left/right; parcel pick-up gives +0.3, delivery +1, each move costs 0.02"""
    WALLS = {(2, 1), (2, 2), (4, 3)}

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.state = np.zeros(7, dtype=np.float32)

    def _free(self):
        while True:
            p = (self.rng.randrange(5), self.rng.randrange(5))
            if p not in self.WALLS:
                return p

    def _obs(self):
        (r, c), (pr, pc), (dr, dc) = self.pos, self.parcel, self.door
        goal = self.door if self.carry else self.parcel
        self.state[:] = [r / 2 - 1, c / 2 - 1, (goal[0] - r) / 4, (goal[1] - c) / 4, float(self.carry),
                         float((r + 1, c) in self.WALLS) - float((r - 1, c) in self.WALLS),
                         float((r, c + 1) in self.WALLS) - float((r, c - 1) in self.WALLS)]
        return self.state.copy()

    def reset(self):
        self.pos, self.parcel, self.door = self._free(), self._free(), self._free()
        self.carry, self.t = False, 0
        return self._obs()

    def step(self, a):
        d = [(-1, 0), (1, 0), (0, -1), (0, 1)][a]
        new = (self.pos[0] + d[0], self.pos[1] + d[1])
        if 0 <= new[0] < 5 and 0 <= new[1] < 5 and new not in self.WALLS:
            self.pos = new
        self.t += 1
        reward, done = -0.02, False
        if not self.carry and self.pos == self.parcel:
            self.carry = True
            reward += 0.3
        elif self.carry and self.pos == self.door:
            reward += 1.0
            done = True
        return self._obs(), reward, done, self.t >= 30


class QNet(nn.Module):
    def __init__(self, n_in=7, n_act=4, hid=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, hid), nn.ReLU(), nn.Linear(hid, hid), nn.ReLU())
        self.head = nn.Linear(hid, n_act)

    def forward(self, s):
        return self.head(self.body(s))


class Replay:
    def __init__(self, cap):
        self.buf = deque(maxlen=cap)

    def add(self, *tr):
        self.buf.append(tr)

    def sample(self, n, rng):
        s, a, r, s2, d = zip(*rng.sample(self.buf, n))
        return (torch.as_tensor(np.array(s)), torch.tensor(a), torch.tensor(r, dtype=torch.float32),
                torch.as_tensor(np.array(s2)), torch.tensor(d, dtype=torch.float32))


class Agent:
    gamma, batch, sync_every = 0.9, 64, 200

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.rng = random.Random(seed)
        self.q, self.target = QNet(), QNet()
        self.target.load_state_dict(self.q.state_dict())
        self.opt = torch.optim.Adam(self.q.parameters(), lr=2e-3)
        self.sched = torch.optim.lr_scheduler.LinearLR(self.opt, 1.0, 0.1, total_iters=6500)
        self.memory = Replay(20000)

    def act(self, s, eps):
        if self.rng.random() < eps:
            return self.rng.randrange(4)
        with torch.no_grad():
            return int(self.q(torch.from_numpy(s)[None]).argmax(1))

    def learn(self):
        s, a, r, s2, d = self.memory.sample(self.batch, self.rng)
        q = self.q(s).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            best = self.q(s2).argmax(1, keepdim=True)
            nxt = self.target(s2).gather(1, best).squeeze(1)
            y = r + self.gamma * (1 - d) * nxt
        loss = nn.functional.smooth_l1_loss(q, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.sched.step()
        return loss.item(), q.mean().item()


def rollout(agent, seed, episodes=60):
    env = CourierEnv(seed)
    returns, delivered = [], 0
    for _ in range(episodes):
        s, total, stop = env.reset(), 0.0, False
        while not stop:
            s, r, done, cut = env.step(agent.act(s, 0.0))
            total += r
            stop = done or cut
            delivered += done
        returns.append(total)
    return float(np.mean(returns)), delivered / episodes


def main():
    torch.set_num_threads(1)
    env, agent = CourierEnv(seed=0), Agent(seed=1)
    s, losses, qs, steps = env.reset(), [], [], 7000
    for step in range(1, steps + 1):
        eps = max(0.05, 1.0 - step / 4000)
        a = agent.act(s, eps)
        s2, r, done, cut = env.step(a)
        agent.memory.add(s, a, r, s2, done)
        s = env.reset() if done or cut else s2
        if step > 500:
            loss, qm = agent.learn()
            losses.append(loss)
            qs.append(qm)
        if step % agent.sync_every == 0:
            agent.target.load_state_dict(agent.q.state_dict())
        if step % 1000 == 0:
            ret, rate = rollout(agent, seed=77, episodes=20)
            print(f"step {step} eps {eps:.2f} td-loss {np.mean(losses[-500:] or [0]):.4f} mean q {np.mean(qs[-500:] or [0]):.3f} "
                  f"greedy return {ret:.3f} delivered {rate:.2f}")
    ret, rate = rollout(agent, seed=991, episodes=150)
    print(f"final: greedy return {ret:.3f}, delivered {rate:.3f} of episodes")


if __name__ == "__main__":
    main()
