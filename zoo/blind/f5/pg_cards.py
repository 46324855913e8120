"""Clipped policy gradient for a small card game with legal-move masks."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)
torch.set_num_threads(1)

ACTIONS, OBS, ENVS, HORIZON, ITERS, EPOCHS = 10, 16, 32, 16, 60, 3


class Table:
    """vectorised toy game: play the card that suits the table"""

    def __init__(self):
        self.w = torch.randn(OBS, ACTIONS, generator=torch.Generator().manual_seed(1))
        self.blocking = False
        self.reset()

    def reset(self):
        self.obs = torch.randn(ENVS, OBS)
        self.legal = torch.rand(ENVS, ACTIONS) > 0.4
        self.legal[:, 0] = True

    def step(self, action):
        value = (self.obs @ self.w).gather(1, action[:, None]).squeeze(1)
        reward = torch.tanh(value / 3)
        if self.blocking:
            # the opponent may remove the card just played from the hand
            hit = torch.rand(ENVS) < 0.02
            self.legal[hit, action[hit]] = False
        self.obs = 0.5 * self.obs + torch.randn(ENVS, OBS)
        return reward

    def deal(self):
        self.legal = torch.rand(ENVS, ACTIONS) > 0.4
        self.legal[:, 0] = True


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(OBS, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.pi, self.v = nn.Linear(64, ACTIONS), nn.Linear(64, 1)

    def forward(self, obs, legal):
        h = self.body(obs)
        logits = self.pi(h).masked_fill(~legal, float("-inf"))
        return F.log_softmax(logits, -1), self.v(h).squeeze(-1)


def collect(env, net):
    obs, acts, masks, rews = [], [], [], []
    with torch.no_grad():
        for _ in range(HORIZON):
            o, m = env.obs, env.legal
            logp, _ = net(o, m)
            gumbel = -torch.empty_like(logp).exponential_().log()
            a = (logp + gumbel).argmax(-1)
            rews.append(env.step(a))
            obs.append(o), acts.append(a), masks.append(m)
            env.deal()
    obs, acts, masks = torch.cat(obs), torch.cat(acts), torch.cat(masks)
    with torch.no_grad():
        logp, value = net(obs, masks)
    return obs, acts, masks, torch.cat(rews), logp.gather(1, acts[:, None]).squeeze(1), value


def main():
    env, net = Table(), Policy()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    step = 0
    for it in range(ITERS):
        env.blocking = it >= 15
        env.reset()
        obs, acts, masks, rews, old, value = collect(env, net)
        adv = rews - value
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        for _ in range(EPOCHS):
            for idx in torch.randperm(len(obs)).split(128):
                logp, v = net(obs[idx], masks[idx])
                new = logp.gather(1, acts[idx][:, None]).squeeze(1)
                ratio = torch.exp(new - old[idx])
                gain = torch.minimum(ratio * adv[idx], ratio.clamp(0.8, 1.2) * adv[idx])
                loss = -gain.mean() + 0.5 * F.mse_loss(v, rews[idx])
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                opt.step()
                step += 1
        print(f"iter {it} step {step} loss {loss.item():.4f} reward {rews.mean().item():+.3f}")


if __name__ == "__main__":
    main()
