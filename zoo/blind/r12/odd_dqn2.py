"""DQN on a chain walk with a target network; the TD loss grows while the values grow, the policy gets better."""
import copy, random, numpy as np, torch, torch.nn as nn
random.seed(0); torch.manual_seed(0); np.random.seed(0)
N, GAMMA, LIM = 10, 0.97, 40
eye = torch.eye(N)
def step(s, a):
    if random.random() < 0.1: a = 1 - a
    if a == 1: s2 = min(N - 1, s + 1)
    else: s2 = max(0, s - 1)
    return s2, (10.0 if s2 == N - 1 else 0.05 if s2 == 0 else 0.0), s2 == N - 1
q = nn.Sequential(nn.Linear(N, 48), nn.ReLU(), nn.Linear(48, 2)); tq = copy.deepcopy(q).requires_grad_(False)
opt = torch.optim.Adam(q.parameters(), 1e-3); mem = []; steps = 0; losses = []
for ep in range(1, 181):
    s, ret = 0, 0.; eps = max(0.05, 1 - ep / 90)
    for t in range(LIM):
        a = random.randint(0, 1) if random.random() < eps else int(q(eye[s]).argmax())
        s2, r, dn = step(s, a); mem.append((s, a, r, s2, dn)); mem = mem[-4000:]; s = s2; ret += r; steps += 1
        if len(mem) > 200 and steps % 3 == 0:
            S, A, R, S2, Dn = zip(*random.sample(mem, 64))
            with torch.no_grad(): y = torch.tensor(R) + GAMMA * tq(eye[list(S2)]).max(1)[0] * (1 - torch.tensor(Dn, dtype=torch.float32))
            loss = nn.functional.smooth_l1_loss(q(eye[list(S)]).gather(1, torch.tensor(A)[:, None]).squeeze(1), y)
            opt.zero_grad(); loss.backward(); opt.step(); losses.append(loss.item())
        if steps % 200 == 0: tq.load_state_dict(q.state_dict())
        if dn: break
    if ep % 18 == 0: print(f"episode {ep} eps {eps:.2f} td loss {np.mean(losses[-100:]):.4f} Q(start) {q(eye[0]).max().item():.2f}")
wins = 0
for _ in range(50):
    s = 0
    for t in range(LIM):
        s, r, dn = step(s, int(q(eye[s]).argmax()))
        if dn: wins += 1; break
print("greedy policy reaches the goal in", wins, "of 50 episodes")
