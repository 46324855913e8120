"""Contextual bandit: reward model per arm with epsilon-greedy exploration and streaming feature scaling."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ARMS, CTX = 5, 6


class StreamScaler:
    """Keeps exponential first and second moments of the raw context."""

    def __init__(self, dim, decay=0.92):
        self.m1 = torch.zeros(dim)
        self.m2 = torch.zeros(dim)
        self.decay, self.w = decay, 0.0

    def update(self, x):
        d = self.decay
        self.m1 = d * self.m1 + (1 - d) * x.mean(0)
        self.m2 = d * self.m2 + (1 - d) * (x * x).mean(0)
        self.w = d * self.w + (1 - d)

    def __call__(self, x):
        mean = self.m1 / self.w
        var = self.m2 / self.w - mean * mean
        return (x - mean) / torch.sqrt(var + 1e-8)


class Visitors:
    """Context: five behavioural numbers and the session clock in seconds; a replayed archive first, then live traffic."""

    def __init__(self, gen):
        self.gen = gen
        self.pref = torch.randn(ARMS, CTX - 1, generator=gen)
        self.served = 0

    def draw(self, n):
        beh = torch.randn(n, CTX - 1, generator=self.gen)
        u = torch.rand(n, 1, generator=self.gen)
        clock = 40000 * u if self.served < 200 else 40000 + 0.5 * (self.served - 200) + 2 * u
        self.served += 1
        probs = torch.sigmoid(1.5 * beh @ self.pref.t())
        return torch.cat([beh, clock], 1), probs


def main(steps=500, batch=64):
    torch.manual_seed(2)
    gen = torch.Generator().manual_seed(9)
    world, scaler = Visitors(gen), StreamScaler(CTX)
    model = nn.Sequential(nn.Linear(CTX, 64), nn.ReLU(), nn.Linear(64, ARMS))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    regret = 0.0
    for step in range(steps):
        raw, probs = world.draw(batch)
        scaler.update(raw)
        x = scaler(raw)
        logits = model(x)
        greedy = logits.argmax(1)
        explore = torch.rand(batch, generator=gen) < 0.2
        arm = torch.where(explore, torch.randint(ARMS, (batch,), generator=gen), greedy)
        p = probs.gather(1, arm.unsqueeze(1)).squeeze(1)
        reward = (torch.rand(batch, generator=gen) < p).float()
        loss = F.binary_cross_entropy_with_logits(logits.gather(1, arm.unsqueeze(1)).squeeze(1), reward)
        opt.zero_grad()
        loss.backward()
        opt.step()
        regret = 0.98 * regret + 0.02 * (probs.max(1).values - p).mean().item()
        if step % 25 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} regret {regret:.4f}")


if __name__ == "__main__":
    main()
