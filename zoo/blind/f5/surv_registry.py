"""Cox model with a neural risk score on registry data with delayed entry."""
import torch
import torch.nn as nn

torch.manual_seed(19)
torch.set_num_threads(1)

N, P, BATCH, EPOCHS = 3000, 12, 50, 10


def make_registry():
    g = torch.Generator().manual_seed(77)
    x = torch.randn(N, P, generator=g)
    beta = torch.randn(P, generator=g) * 0.4
    hazard = torch.exp(x @ beta + 0.3 * x[:, 0] * x[:, 1])
    lifetime = -torch.log(torch.rand(N, generator=g)) / hazard * 4.0
    entry = torch.rand(N, generator=g) * 0.8 * lifetime.clamp(max=8.0)
    censor = entry + 0.5 + 9.0 * torch.rand(N, generator=g)
    event = lifetime <= censor
    exit_ = torch.minimum(lifetime, censor)
    # one record entered the registry on the day of death, long after all others left
    pos = 1234
    entry[pos], exit_[pos], event[pos] = 61.0, 61.0, True
    return x, entry, exit_, event


class Risk(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(P, 64), nn.ELU(), nn.Linear(64, 64), nn.ELU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def partial_likelihood(score, entry, exit_, event):
    # row i: who is under observation just before the event of i
    at_risk = (entry[None, :] < exit_[:, None]) & (exit_[None, :] >= exit_[:, None])
    shifted = score - score.max().detach()
    den = (shifted.exp()[None, :] * at_risk).sum(1)
    terms = shifted - torch.log(den)
    return -terms[event].sum() / event.sum().clamp(min=1)


def concordance(score, exit_, event):
    earlier = (exit_[:, None] < exit_[None, :]) & event[:, None]
    right = score[:, None] > score[None, :]
    return (right & earlier).sum().item() / max(1, earlier.sum().item())


def main():
    x, entry, exit_, event = make_registry()
    model = Risk()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
    step = 0
    for epoch in range(EPOCHS):
        # younger cohorts join the training later
        pool = torch.arange(N) if epoch >= 2 else torch.arange(1000)
        order = pool[torch.randperm(len(pool))]
        for s in range(0, len(order), BATCH):
            rows = order[s:s + BATCH]
            loss = partial_likelihood(model(x[rows]), entry[rows], exit_[rows], event[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            step += 1
        with torch.no_grad():
            sub = pool[:800]
            c = concordance(model(x[sub]), exit_[sub], event[sub])
        print(f"-- epoch {epoch} concordance {c:.3f}")


if __name__ == "__main__":
    main()
