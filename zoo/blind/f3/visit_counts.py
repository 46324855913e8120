import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Visits(IterableDataset):
    def __init__(self, n, seed=3):
        self.n, self.seed = n, seed

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        w = torch.randn(7, generator=g) * 0.3
        for i in range(self.n):
            x = torch.randn(7, generator=g)
            y = torch.poisson(torch.exp(0.5 + x @ w), generator=g)
            if i == 4489:
                y = torch.tensor(4.0e6)
            yield x, y


class Rate(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(7, 24)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x))).squeeze(-1)


def poisson_nll(eta, y):
    return (torch.exp(eta) - y * eta).mean()


def main():
    torch.manual_seed(3)
    model = Rate()
    opt = torch.optim.SGD(model.parameters(), lr=0.02)
    window = []
    for i, (x, y) in enumerate(DataLoader(Visits(8000), batch_size=32)):
        loss = poisson_nll(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        window.append(loss.item())
        if len(window) == 25:
            print(f"batch {i + 1} nll {sum(window) / 25:.4f}")
            window = []


main()
