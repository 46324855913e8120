"""Self-exciting point process for spike trains, intensities linear in the history."""
import torch
import torch.nn as nn

torch.manual_seed(33)
torch.set_num_threads(1)

N_TRAINS, MAX_EVENTS, BATCH, STEPS = 480, 40, 16, 500
HORIZON = 20.0


def make_trains():
    """mostly regular firing with a refractory period, now and then a burst"""
    g = torch.Generator().manual_seed(3)
    times = torch.full((N_TRAINS, MAX_EVENTS), HORIZON)
    count = torch.zeros(N_TRAINS, dtype=torch.long)
    for i in range(N_TRAINS):
        gaps = 0.55 + 0.25 * torch.rand(MAX_EVENTS, generator=g)
        t = torch.cumsum(gaps, 0)
        if i % 60 == 59:
            t[10:16] = t[10] + 0.02 * torch.arange(6)
        keep = t < HORIZON
        n = int(keep.sum())
        times[i, :n] = t[:n].sort().values
        count[i] = n
    covariate = torch.randn(N_TRAINS, 4, generator=g)
    return times, count, covariate


class Hawkes(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
        self.alpha = nn.Parameter(torch.tensor(0.1))
        self.log_decay = nn.Parameter(torch.tensor(0.7))

    def forward(self, times, count, cov):
        mu = nn.functional.softplus(self.base(cov)).squeeze(1) + 0.8
        decay = self.log_decay.exp()
        real = torch.arange(times.shape[1])[None, :] < count[:, None]
        lag = times[:, :, None] - times[:, None, :]
        earlier = (lag > 0) & real[:, None, :] & real[:, :, None]
        kernel = torch.exp(-decay * lag.clamp(min=0)) * earlier
        intensity = mu[:, None] + self.alpha * kernel.sum(-1)
        log_term = (torch.log(intensity) * real).sum(1)
        tail = (1 - torch.exp(-decay * (HORIZON - times))) * real
        compensator = mu * HORIZON + self.alpha / decay * tail.sum(1)
        return (compensator - log_term) / count


def main():
    times, count, cov = make_trains()
    model = Hawkes()
    opt = torch.optim.Adam(model.parameters(), lr=6e-3)
    for step in range(STEPS):
        rows = torch.randint(0, N_TRAINS, (BATCH,))
        nll = model(times[rows], count[rows], cov[rows])
        # an even fit over the trains matters too
        loss = nll.mean() + 0.2 * nll.std()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step} nll {loss.item():.4f} alpha {model.alpha.item():+.3f} "
                  f"decay {model.log_decay.exp().item():.3f}")


if __name__ == "__main__":
    main()
