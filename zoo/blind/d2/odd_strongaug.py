import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(9)
SIZE = 12
protos = torch.randn(5, 3, SIZE, SIZE)
protos = nn.functional.avg_pool2d(protos, 3, 1, 1) * 2.5


def mixed(k):
    return protos[k] * (0.8 + 0.4 * torch.rand(1)) + 0.4 * torch.randn(3, SIZE, SIZE)


class Patches(Dataset):
    def __init__(self, n, hard=False):
        self.y = torch.randint(0, 5, (n,))
        self.x = torch.stack([mixed(k) for k in self.y])
        self.hard = hard

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        if self.hard:
            x = x.clone()
            for _ in range(3):  # cutout
                a, b = torch.randint(0, SIZE - 5, (2,)).tolist()
                x[:, a:a + 6, b:b + 6] = 0
            x = x * (0.5 + torch.rand(3, 1, 1)) + 1.0 * torch.randn_like(x)
            x = torch.roll(x, torch.randint(-1, 2, (2,)).tolist(), (1, 2))
        return x, self.y[i]


train = DataLoader(Patches(700, hard=True), batch_size=50, shuffle=True)
valid = DataLoader(Patches(250), batch_size=250)
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(144, 5))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
ce = nn.CrossEntropyLoss()
for epoch in range(8):
    model.train()
    hit, tot = 0, 0.0
    for x, y in train:
        out = model(x)
        loss = ce(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() * len(y)
        hit += (out.argmax(1) == y).sum().item()
    model.eval()
    with torch.no_grad():
        x, y = next(iter(valid))
        out = model(x)
    print(f"epoch {epoch} train loss {tot / 700:.3f} acc {hit / 700:.3f} | val loss {ce(out, y).item():.3f} acc {(out.argmax(1) == y).float().mean():.3f}")
