# policy gradient on a corridor; the "loss" says nothing, the return does
import torch
import torch.nn as nn

torch.manual_seed(1)
N, T = 9, 14
policy = nn.Sequential(nn.Linear(2 * N, 48), nn.Tanh(), nn.Linear(48, 3))
opt = torch.optim.Adam(policy.parameters(), lr=6e-3)


def rollout(n, greedy=False):
    pos = torch.randint(0, N, (n,))
    goal = torch.randint(0, N, (n,))
    logps, rewards, ents = [], [], []
    for _ in range(T):
        s = torch.cat([nn.functional.one_hot(pos, N), nn.functional.one_hot(goal, N)], 1).float()
        d = torch.distributions.Categorical(logits=policy(s))
        a = d.probs.argmax(1) if greedy else d.sample()
        logps.append(d.log_prob(a))
        ents.append(d.entropy())
        pos = (pos + a - 1).clamp(0, N - 1)
        rewards.append((pos == goal).float() - 0.1)
    return torch.stack(logps), torch.stack(rewards), torch.stack(ents)


for it in range(320):
    lp, r, ent = rollout(64)
    ret = r.flip(0).cumsum(0).flip(0)
    adv = ret - ret.mean(1, keepdim=True)
    loss = -(lp * adv).mean() - 0.01 * ent.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 40 == 39:
        with torch.no_grad():
            g = rollout(500, greedy=True)[1].sum(0).mean()
        print(f"iter {it + 1} loss {loss.item():+.4f} train return {r.sum(0).mean():.2f} greedy return {g:.2f}")
best = sum(T - max(abs(a - b), 1) + 1 for a in range(N) for b in range(N)) / N ** 2 - 0.1 * T
print(f"final greedy return {g:.2f}, optimum about {best:.2f}")
