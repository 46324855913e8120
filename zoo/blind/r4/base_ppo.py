"""PPO on a batch of small grid worlds (walk to the flag)."""
import torch
import torch.nn as nn
from torch.distributions import Categorical

N_ENV, T, UPDATES = 24, 24, 30
GAMMA, LAM, CLIP = 0.97, 0.9, 0.2


class Grid:
    MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]]).float()

    def __init__(self, n, side=7, limit=20):
        self.n, self.side, self.limit = n, side, limit
        self.state = torch.zeros(n, 4)
        self.clock = torch.zeros(n)
        self._respawn(torch.ones(n, dtype=torch.bool))

    def _respawn(self, which):
        k = int(which.sum())
        self.state[which] = torch.randint(0, self.side, (k, 4)).float() / (self.side - 1) * 2 - 1
        self.clock[which] = 0

    def step(self, action):
        self.state[:, :2] += self.MOVES[action] * 2 / (self.side - 1)
        self.state[:, :2].clamp_(-1, 1)
        self.clock += 1
        found = (self.state[:, :2] - self.state[:, 2:]).abs().amax(1) < 0.1
        reward = found.float() - 0.02
        done = found | (self.clock >= self.limit)
        self._respawn(done)
        return self.state, reward, done, found


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 4))
        self.v = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 1))

    def forward(self, s):
        return Categorical(logits=self.pi(s)), self.v(s).squeeze(-1)


def advantages(rew, val, done, last):
    adv, acc = torch.zeros_like(rew), torch.zeros(rew.shape[1])
    for t in reversed(range(len(rew))):
        nxt = last if t == len(rew) - 1 else val[t + 1]
        alive = 1 - done[t]
        delta = rew[t] + GAMMA * nxt * alive - val[t]
        acc = delta + GAMMA * LAM * alive * acc
        adv[t] = acc
    return adv


torch.manual_seed(0)
env, ac = Grid(N_ENV), ActorCritic()
opt = torch.optim.Adam(ac.parameters(), lr=4e-3, eps=1e-5)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda u: max(0.0, 1 - u / UPDATES))
obs = env.state
ended = reached = 0
for update in range(1, UPDATES + 1):
    S, A, LP, R, V, D = [], [], [], [], [], []
    with torch.no_grad():
        for _ in range(T):
            dist, v = ac(obs)
            a = dist.sample()
            S.append(obs.clone())
            A.append(a)
            LP.append(dist.log_prob(a))
            V.append(v)
            obs, r, done, found = env.step(a)
            R.append(r)
            D.append(done.float())
            ended += int(done.sum())
            reached += int(found.sum())
        last = ac(obs)[1]
    R, V, D = torch.stack(R), torch.stack(V), torch.stack(D)
    adv = advantages(R, V, D, last)
    ret = (adv + V).flatten()
    S, A, LP = torch.cat(S), torch.cat(A), torch.cat(LP)
    adv = adv.flatten()
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    for _ in range(4):
        for j in torch.randperm(len(A)).split(192):
            dist, v = ac(S[j])
            ratio = torch.exp(dist.log_prob(A[j]) - LP[j])
            pg = -torch.min(ratio * adv[j], ratio.clamp(1 - CLIP, 1 + CLIP) * adv[j]).mean()
            v_loss = (v - ret[j]).pow(2).mean()
            loss = pg + 0.5 * v_loss - 0.01 * dist.entropy().mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(ac.parameters(), 0.5)
            opt.step()
    sched.step()
    if update % 5 == 0:
        print(f"update {update:3d} success {reached / max(ended, 1):.3f} episode length {5 * T * N_ENV / max(ended, 1):.1f} "
              f"value loss {v_loss.item():.4f} entropy {dist.entropy().mean().item():.3f}")
        ended = reached = 0
