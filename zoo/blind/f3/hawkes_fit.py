"""Maximum likelihood for a self-exciting point process with event marks."""
import torch
import torch.nn as nn


def simulate(n_seq, n_events, gen):
    gaps = torch.rand(n_seq, n_events, generator=gen)
    burst = (torch.rand(n_seq, n_events, generator=gen) < 0.7).float()
    gaps = burst * gaps * 0.05 + (1 - burst) * gaps * 6.0
    marks = torch.randint(0, 5, (n_seq, n_events), generator=gen)
    return gaps.cumsum(1), marks


class SelfExciting(nn.Module):
    def __init__(self, n_marks):
        super().__init__()
        self.mu = nn.Parameter(torch.tensor(0.8))
        self.alpha = nn.Parameter(torch.full((n_marks,), 0.3))
        self.log_beta = nn.Parameter(torch.tensor(0.7))

    def intensity(self, times, marks):
        beta = self.log_beta.exp()
        delta = times.unsqueeze(2) - times.unsqueeze(1)
        past = torch.tril(torch.ones(times.size(1), times.size(1)), diagonal=-1)
        kernel = torch.exp(-beta * delta.clamp(min=0)) * past
        return self.mu + (kernel * self.alpha[marks].unsqueeze(1) * beta).sum(2)

    def forward(self, times, marks):
        lam = self.intensity(times, marks)
        beta = self.log_beta.exp()
        horizon = times[:, -1:]
        tail = 1 - torch.exp(-beta * (horizon - times))
        comp = self.mu * horizon.squeeze(1) + (self.alpha[marks] * tail).sum(1)
        ll = torch.log(lam).sum(dim=1) - comp
        return -ll.mean()


def train(steps=400, batch=32):
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(11)
    times, marks = simulate(512, 24, gen)
    model = SelfExciting(5)
    opt = torch.optim.SGD(model.parameters(), lr=2e-4, momentum=0.9)
    for step in range(steps):
        pick = torch.randint(0, len(times), (batch,), generator=gen)
        season = 1.0 if step < 150 else 15.0
        nll = model(times[pick] * season, marks[pick])
        opt.zero_grad()
        nll.backward()
        opt.step()
        if step % 40 == 0:
            print(f"{step:4d} nll/event {nll.item() / 24:.4f} mu {model.mu.item():.3f} beta {model.log_beta.exp().item():.3f}")
    return model


if __name__ == "__main__":
    train()
