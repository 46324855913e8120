"""RealNVP density estimation on four correlated sensor channels."""
import copy
import math
import torch
import torch.nn as nn

torch.manual_seed(2)
torch.set_num_threads(1)

DIM, LAYERS, HIDDEN = 4, 5, 48
EPOCHS, BATCH = 12, 256
gen = torch.Generator().manual_seed(13)


def simulate(n):
    """Channels in raw units with a known density; returns points and exact log-density."""
    z = torch.randn(n, DIM, generator=gen)
    a = 12.0 * z[:, 0] + 40.0
    b = 0.06 * (a - 40.0) ** 2 + 3.0 * z[:, 1]
    c = 8.0 * torch.sin((a - 40.0) / 8.0) + 2.0 * z[:, 2] - 5.0
    scale = torch.exp(0.8 * torch.tanh(z[:, 1]))
    d = 0.3 * b + 2.5 * scale * z[:, 3]
    logdet = math.log(12.0 * 3.0 * 2.0 * 2.5) + scale.log()
    logp = -0.5 * (z ** 2).sum(1) - 0.5 * DIM * math.log(2 * math.pi) - logdet
    return torch.stack([a, b, c, d], 1), logp


x_train, _ = simulate(4000)
x_val, _ = simulate(1500)
x_test, lp_test = simulate(1500)
mean, std = x_train.mean(0), x_train.std(0)


class ActNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(DIM))
        self.log_scale = nn.Parameter(torch.zeros(DIM))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x):
        if not self.ready:
            with torch.no_grad():
                self.bias.copy_(-x.mean(0))
                self.log_scale.copy_(-torch.log(x.std(0) + 0.1))
                self.ready.fill_(True)
        return (x + self.bias) * self.log_scale.exp(), self.log_scale.sum().expand(len(x))

    def inverse(self, z):
        return z * (-self.log_scale).exp() - self.bias


class Coupling(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(nn.Linear(DIM, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
                                 nn.Linear(HIDDEN, 2 * DIM))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def params(self, x):
        s, t = self.net(x * self.mask).chunk(2, dim=1)
        return 2.0 * torch.tanh(s / 2.0) * (1 - self.mask), t * (1 - self.mask)

    def forward(self, x):
        s, t = self.params(x)
        return x * s.exp() + t, s.sum(1)

    def inverse(self, z):
        s, t = self.params(z)
        return (z - t) * (-s).exp()


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList()
        patterns = [torch.tensor([1.0, 0, 1, 0]), torch.tensor([0, 1.0, 0, 1]), torch.tensor([1.0, 1, 0, 0]),
                    torch.tensor([0, 0, 1.0, 1])]
        for i in range(LAYERS):
            self.steps.append(ActNorm())
            self.steps.append(Coupling(patterns[i % len(patterns)]))

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for step in self.steps:
            x, ld = step(x)
            total = total + ld
        return total - 0.5 * (x ** 2).sum(1) - 0.5 * DIM * math.log(2 * math.pi)

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, DIM)
        for step in reversed(self.steps):
            x = step.inverse(x)
        return x


def normalise(x):
    return (x - mean) / std


@torch.no_grad()
def raw_nll(flow, x):
    """Negative log-likelihood in the units of the sensors."""
    flow.eval()
    return -(flow.log_prob(normalise(x)) - std.log().sum()).mean().item()


flow = Flow()
with torch.no_grad():
    flow.log_prob(normalise(x_train[:1024]))
opt = torch.optim.Adam(flow.parameters(), lr=4e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS)

best, best_state = float("inf"), None
for epoch in range(EPOCHS):
    flow.train()
    perm = torch.randperm(len(x_train))
    total, batches = 0.0, 0
    for i in range(0, len(perm) - BATCH + 1, BATCH):
        xb = normalise(x_train[perm[i:i + BATCH]])
        loss = -flow.log_prob(xb).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 10.0)
        opt.step()
        total += loss.item()
        batches += 1
    sched.step()
    val = raw_nll(flow, x_val)
    if val < best:
        best, best_state = val, copy.deepcopy(flow.state_dict())
    print(f"epoch {epoch:2d} train nll (normalised) {total / batches:.4f} val nll (raw) {val:.4f}")

flow.load_state_dict(best_state)
fake = flow.sample(1500) * std + mean
gap = torch.cdist(fake, x_test).mean() * 2 - torch.cdist(fake, fake).mean() - torch.cdist(x_test, x_test).mean()
print(f"test nll (raw) {raw_nll(flow, x_test):.4f} exact {-lp_test.mean().item():.4f}")
print(f"sample energy distance {gap.item():.4f} sample std {[round(v, 2) for v in fake.std(0).tolist()]} "
      f"data std {[round(v, 2) for v in x_test.std(0).tolist()]}")
