"""REINFORCE with a moving baseline on a 5x5 grid with a goal: the 'loss' has no meaning of its own."""
import numpy as np, torch, torch.nn as nn
torch.manual_seed(1); rng = np.random.default_rng(1)
N, GOAL, PIT, T = 5, (4, 4), (2, 2), 20
MOVES = np.array([(0, 1), (0, -1), (1, 0), (-1, 0)])
policy = nn.Sequential(nn.Linear(2 * N, 32), nn.ReLU(), nn.Linear(32, 4))
opt = torch.optim.Adam(policy.parameters(), lr=5e-3)

def encode(p):
    return torch.from_numpy(np.concatenate([np.eye(N)[p[:, 0]], np.eye(N)[p[:, 1]]], 1).astype(np.float32))

def play(B, greedy=False):
    p = np.zeros((B, 2), int) if greedy else rng.integers(0, N, (B, 2)); p[(p == GOAL).all(1) | (p == PIT).all(1)] = 0; alive = np.ones(B, bool); logps, rews, masks, ents = [], [], [], []; win = np.zeros(B, bool)
    for _ in range(T):
        d = torch.distributions.Categorical(logits=policy(encode(p)))
        a = d.probs.argmax(-1) if greedy else d.sample()
        logps.append(d.log_prob(a)); ents.append(d.entropy().mean()); masks.append(alive.copy())
        p = np.clip(p + MOVES[a.numpy()], 0, N - 1)
        goal, pit = (p == GOAL).all(1), (p == PIT).all(1)
        rews.append(alive * (-0.05 + 1.0 * goal - 1.0 * pit))
        win |= alive & goal
        alive = alive & ~goal & ~pit
    return torch.stack(logps), torch.stack(ents).mean(), np.array(rews), np.array(masks), win

baseline = 0.0
for it in range(1, 301):
    lp, ent, r, m, win = play(32)
    ret = np.cumsum(r[::-1], 0)[::-1].copy()
    adv = torch.tensor((ret - baseline) * m, dtype=torch.float32)
    baseline = 0.9 * baseline + 0.1 * ret[m].mean()
    loss = -(lp * adv).sum() / 32 - 0.3 * ent
    opt.zero_grad(); loss.backward(); opt.step()
    if it % 30 == 0:
        print(f"update {it} loss {loss.item():+.3f} return {r.sum(0).mean():+.3f} success {win.mean():.2f}")
_, _, r, _, win = play(64, True)
print("greedy return", r.sum(0).mean().round(3), "success", win.mean())
