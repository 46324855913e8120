"""Click counts per item with a negative-binomial head and popularity features."""
import torch
import torch.nn as nn

torch.manual_seed(27)
torch.set_num_threads(1)

ITEMS, BATCH, STEPS = 200, 128, 500


class ClickStream:
    """synthetic traffic: a few items collect most of the clicks"""

    def __init__(self):
        self.g = torch.Generator().manual_seed(14)
        self.appeal = torch.randn(ITEMS, generator=self.g) * 0.8 + 1.0
        self.appeal[17] = 4.6

    def next(self):
        item = torch.randint(0, ITEMS, (BATCH,), generator=self.g)
        item[0] = 17
        ctx = torch.randn(BATCH, 6, generator=self.g)
        rate = torch.exp(self.appeal[item] + 0.3 * ctx[:, 0] - 0.2 * ctx[:, 1])
        clicks = torch.poisson(rate, generator=self.g)
        return item, ctx, clicks


class Popularity:
    """clicks seen so far, kept compact because the real catalogue is large"""

    def __init__(self):
        self.total = torch.zeros(ITEMS, dtype=torch.int16)

    def features(self, item):
        return torch.log1p(self.total[item].float()).unsqueeze(1)

    def update(self, item, clicks):
        self.total.index_add_(0, item, clicks.to(torch.int16))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(ITEMS, 16)
        self.net = nn.Sequential(nn.Linear(16 + 6 + 1, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(),
                                 nn.Linear(96, 2))

    def forward(self, item, ctx, pop):
        h = torch.cat([self.emb(item), ctx, 0.1 * pop], 1)
        log_mu, log_r = self.net(h).unbind(1)
        return log_mu, log_r


def nb_nll(log_mu, log_r, y):
    r = nn.functional.softplus(log_r) + 0.1
    mu = nn.functional.softplus(log_mu * 4) + 1e-3
    ll = (torch.lgamma(y + r) - torch.lgamma(r) - torch.lgamma(y + 1)
          + r * torch.log(r / (r + mu)) + y * torch.log(mu / (r + mu)))
    return -ll.mean()


def main():
    stream, pop, model = ClickStream(), Popularity(), Model()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(STEPS):
        item, ctx, clicks = stream.next()
        loss = nb_nll(*model(item, ctx, pop.features(item)), clicks)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        pop.update(item, clicks)
        if step % 20 == 0:
            print(f"step {step} nll {loss.item():.4f} clicks so far {int(pop.total.long().sum())}")


if __name__ == "__main__":
    main()
