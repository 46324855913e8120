import torch
from torch.distributions import Categorical

torch.manual_seed(17)
# contextual bandit with very noisy rewards; actor-critic with a learnt baseline
A, S = 4, 6
pay = torch.eye(S, A) * 1.5
pay[4, 2] = pay[5, 0] = 1.5
actor = torch.nn.Linear(S, A)
critic = torch.nn.Linear(S, 1)
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=0.02)
window = []
for ep in range(600):
    s = torch.randint(0, S, (16,))
    x = torch.nn.functional.one_hot(s, S).float()
    pi = Categorical(logits=actor(x))
    a = pi.sample()
    r = pay[s, a] + 2.0 * torch.randn(16)
    v = critic(x).squeeze(1)
    adv = (r - v).detach()
    loss = -(pi.log_prob(a) * adv).mean() + 0.5 * (r - v).pow(2).mean() - 0.005 * pi.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    window.append(r.mean().item())
    if ep % 100 == 99:
        print(f"update {ep + 1} loss {loss.item():.3f} mean reward {sum(window[-50:]) / 50:.3f}")
best = actor(torch.eye(S)).argmax(1)
print("greedy value", pay[torch.arange(S), best].mean().item(), "of 1.5")
