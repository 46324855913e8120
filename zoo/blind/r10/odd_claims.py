"""Size of insurance claims: heavy tails, and little that can be learned.

Claims are Pareto-like, so a few of them dominate every squared error; we fit the
location of log claims with a Student t likelihood and report the likelihood, the share
of the log variance explained, and how well the risks are ranked. The simulator's own
expectation is printed as the limit: about a twentieth of the variance, not more.
"""
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import StudentT


class Book:
    """Policies with region, vehicle and driver data, and the size of one claim each."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        fixed = np.random.default_rng(0)
        region, vehicle = rng.integers(0, 20, n), rng.integers(0, 12, n)
        age, power, value = rng.uniform(18, 80, n), rng.gamma(4, 22, n), rng.lognormal(9.6, 0.5, n)
        centre = (7.2 + fixed.normal(0, 0.16, 20)[region] + fixed.normal(0, 0.2, 12)[vehicle]
                  + 0.3 * np.exp(-(age - 18) / 8) + 0.35 * (np.log(value) - 9.6)
                  + 0.15 * np.maximum(age - 70, 0) / 10)
        log_claim = np.minimum(centre + 0.75 * rng.standard_t(3.0, n), np.log(5e6))      # policy limit
        self.codes = torch.tensor(np.stack([region, vehicle], 1))
        self.numeric = torch.tensor(np.stack([age, np.log(power), np.log(value)], 1), dtype=torch.float32)
        self.target = torch.tensor(log_claim, dtype=torch.float32)
        self.ideal = torch.tensor(centre, dtype=torch.float32)


class Severity(nn.Module):
    def __init__(self, book):
        super().__init__()
        self.register_buffer("mean", book.numeric.mean(0))
        self.register_buffer("std", book.numeric.std(0))
        self.region, self.vehicle = nn.Embedding(20, 3), nn.Embedding(12, 3)
        self.net = nn.Sequential(nn.Linear(9, 32), nn.SiLU(), nn.Dropout(0.1), nn.Linear(32, 32), nn.SiLU(),
                                 nn.Linear(32, 1))
        self.start = nn.Parameter(book.target.median())
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.log_df = nn.Parameter(torch.tensor(1.6))

    def forward(self, codes, numeric):
        x = torch.cat([self.region(codes[:, 0]), self.vehicle(codes[:, 1]), (numeric - self.mean) / self.std], 1)
        return self.start + self.net(x).squeeze(1)

    def nll(self, location, target):
        return -StudentT(self.log_df.exp() + 1.0, location, self.log_scale.exp()).log_prob(target).mean()


def ranking(location, target):
    """Spearman correlation of predicted and actual size."""
    rank = lambda v: v.argsort().argsort().float()
    return torch.corrcoef(torch.stack([rank(location), rank(target)]))[0, 1].item()


def explained(location, target):
    return 1 - ((location - target) ** 2).mean().item() / target.var().item()


@torch.no_grad()
def report(model, book):
    model.eval()
    loc = model(book.codes, book.numeric)
    money = (book.target.double().exp() - loc.double().exp()).square().mean().sqrt().item()
    return (f"nll {model.nll(loc, book.target):.4f} R2(log) {explained(loc, book.target):.3f} "
            f"spearman {ranking(loc, book.target):.3f} rmse in euro {money:.0f}")


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train, val, test = Book(24000, 1), Book(6000, 2), Book(12000, 3)
    claims = train.target.double().exp()
    top = claims.sort(descending=True).values[:len(claims) // 100].sum() / claims.sum()
    print(f"largest hundredth of the claims: {top:.2f} of the money")
    print(f"limit on val: R2(log) {explained(val.ideal, val.target):.3f} "
          f"spearman {ranking(val.ideal, val.target):.3f}")
    model = Severity(train)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    epochs = 12
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(train.target)).split(128):
            loss = model.nll(model(train.codes[rows], train.numeric[rows]), train.target[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        schedule.step()
        print(f"epoch {epoch:2d} train nll {total / len(train.target):.4f} | val {report(model, val)}")
    print(f"test {report(model, test)}")
    print(f"limit on test: R2(log) {explained(test.ideal, test.target):.3f} "
          f"spearman {ranking(test.ideal, test.target):.3f}")


if __name__ == "__main__":
    main()
