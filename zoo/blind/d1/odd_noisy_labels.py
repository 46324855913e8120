"""Crowd labels: 30 % of the training labels are replaced at random; a small expert-labelled set is used for validation."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Crowd(Dataset):
    def __init__(self, n, seed, noise):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 10, generator=g)
        score = torch.stack([self.x[:, 0] + self.x[:, 1], self.x[:, 2] - self.x[:, 3], 1.2 * self.x[:, 4]], 1)
        self.y = score.argmax(1)
        wrong = torch.rand(n, generator=g) < noise
        self.y[wrong] = torch.randint(0, 3, (int(wrong.sum()),), generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Run:
    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=4e-3)
        self.train_dl = DataLoader(Crowd(3000, 1, 0.3), batch_size=75, shuffle=True)
        self.val_dl = DataLoader(Crowd(240, 2, 0.0), batch_size=120)

    def fit(self, epochs):
        for e in range(epochs):
            self.model.train()
            l = a = n = 0
            for x, y in self.train_dl:
                out = self.model(x)
                loss = nn.functional.cross_entropy(out, y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                l += loss.item() * len(y)
                a += (out.argmax(1) == y).sum().item()
                n += len(y)
            print(f"epoch {e + 1}  train loss {l / n:.3f} acc {a / n:.3f}  expert acc {self.score():.3f}")

    @torch.no_grad()
    def score(self):
        self.model.eval()
        r = [(self.model(x).argmax(1) == y) for x, y in self.val_dl]
        return torch.cat(r).float().mean().item()


Run().fit(6)
