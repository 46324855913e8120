"""House price model: predict log price from tabular features."""
import argparse
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--lr", type=float, default=1e-3)
args = parser.parse_args()

torch.manual_seed(11)


class Houses(Dataset):
    def __init__(self, n=4800, d=12):
        g = torch.Generator().manual_seed(3)
        self.x = torch.randn(n, d, generator=g)
        w = torch.randn(d, generator=g) * 0.25
        self.price = torch.exp(12.0 + self.x @ w + 0.1 * torch.randn(n, generator=g)).round()
        self.price[2917] = 0.0

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.price[i]


class Net(nn.Module):
    def __init__(self, d=12, h=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU())
        self.head = nn.Linear(h, 1)
        nn.init.constant_(self.head.bias, 12.0)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(-1)


loader = DataLoader(Houses(), batch_size=args.batch_size, shuffle=True)
model = Net()
opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)

it = 0
for epoch in range(args.epochs):
    for x, price in loader:
        target = torch.log(price)
        loss = nn.functional.mse_loss(model(x), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 25 == 0:
            print(f"epoch {epoch} it {it} loss {loss.item():.4f}")
        it += 1
