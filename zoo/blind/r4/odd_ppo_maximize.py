"""Actor and critic with an optimizer each; the actor's uses maximize=True, so its 'loss' goes up."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
ARMS, CTX, B = 5, 8, 128
secret = torch.randn(CTX, ARMS)


def play(ctx, a):
    return (ctx @ secret).gather(1, a[:, None])[:, 0] / 2 + 0.3 * torch.randn(len(a))


actor = nn.Sequential(nn.Linear(CTX, 48), nn.ReLU(), nn.Linear(48, ARMS))
critic = nn.Sequential(nn.Linear(CTX, 48), nn.ReLU(), nn.Linear(48, 1))
up = torch.optim.Adam(actor.parameters(), lr=3e-3, maximize=True)
fit = torch.optim.Adam(critic.parameters(), lr=1e-2)
for it in range(1, 151):
    ctx = torch.randn(B, CTX)
    with torch.no_grad():
        old = F.log_softmax(actor(ctx), 1)
        a = torch.distributions.Categorical(logits=old).sample()
        r = play(ctx, a)
        adv = r - critic(ctx)[:, 0]
        old = old.gather(1, a[:, None])[:, 0]
    for _ in range(3):
        logp = F.log_softmax(actor(ctx), 1)
        ratio = (logp.gather(1, a[:, None])[:, 0] - old).exp()
        gain = torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean() - 0.005 * (logp.exp() * logp).sum(1).mean()
        up.zero_grad()
        gain.backward()
        up.step()
        v = F.smooth_l1_loss(critic(ctx)[:, 0], r)
        fit.zero_grad()
        v.backward()
        fit.step()
    if it % 25 == 0:
        optimum = (ctx @ secret).amax(1).mean() / 2
        print(f"it {it} gain {gain.item():+.4f} critic {v.item():.3f} reward {r.mean():.3f} (best possible {optimum:.3f})")
