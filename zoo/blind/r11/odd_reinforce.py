"""REINFORCE with a learned baseline on a small windy corridor. The policy 'loss' is only a surrogate: it goes up
and down around zero while the return improves."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
L, HORIZON, B = 9, 30, 64


class Corridor:
    """Walk to the cell given by the goal; wind pushes by one at times. -0.05 per step, +1 at the goal."""

    def __init__(self, n):
        self.pos = torch.full((n,), L // 2)
        self.goal = torch.where(torch.rand(n) < 0.5, 0, L - 1)
        self.alive = torch.ones(n, dtype=torch.bool)

    def obs(self):
        return torch.cat([F.one_hot(self.pos, L), F.one_hot(self.goal, L)], 1).float()

    def step(self, a):
        wind = (torch.rand(len(a)) < 0.2).long() * (torch.randint(0, 2, a.shape) * 2 - 1)
        self.pos = (self.pos + (a - 1) + wind).clamp(0, L - 1)
        r = torch.where(self.pos == self.goal, 1.0, -0.05) * self.alive
        was = self.alive
        self.alive = self.alive & (self.pos != self.goal)
        return r, was


policy = nn.Sequential(nn.Linear(2 * L, 48), nn.Tanh(), nn.Linear(48, 3))
value = nn.Sequential(nn.Linear(2 * L, 48), nn.Tanh(), nn.Linear(48, 1))
p_opt = torch.optim.Adam(policy.parameters(), 5e-3)
v_opt = torch.optim.Adam(value.parameters(), 1e-2)
for it in range(1, 161):
    env = Corridor(B)
    logp, val, rew, ent, live = [], [], [], [], []
    for _ in range(HORIZON):
        o = env.obs()
        dist = torch.distributions.Categorical(logits=policy(o))
        a = dist.sample()
        r, was = env.step(a)
        logp.append(dist.log_prob(a)); ent.append(dist.entropy()); val.append(value(o).squeeze(1))
        rew.append(r); live.append(was.float())
        if not env.alive.any():
            break
    ret, g = [], torch.zeros(B)
    for r in reversed(rew):
        g = r + 0.97 * g
        ret.insert(0, g)
    ret, val, live = torch.stack(ret), torch.stack(val), torch.stack(live)
    adv = (ret - val).detach()
    pl = -(torch.stack(logp) * adv * live).sum() / live.sum() - 0.01 * (torch.stack(ent) * live).sum() / live.sum()
    vl = ((val - ret) ** 2 * live).sum() / live.sum()
    p_opt.zero_grad(); pl.backward(); p_opt.step()
    v_opt.zero_grad(); vl.backward(); v_opt.step()
    if it % 20 == 0:
        print(f"iter {it}: surrogate {pl.item():+.3f} value mse {vl.item():.3f} return {torch.stack(rew).sum(0).mean():.3f}")
with torch.no_grad():
    env, total, steps = Corridor(500), 0, 0
    for _ in range(HORIZON):
        r, was = env.step(policy(env.obs()).argmax(1))
        total += r.mean().item()
        steps += was.float().mean().item()
print(f"greedy policy: mean return {total:.3f}, mean steps {steps:.2f} (shortest without wind 4), reached {1 - env.alive.float().mean():.3f}")
