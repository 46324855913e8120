"""Spectra of rare minerals: 26 certified specimens are all there is for validation."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(12)
CLASSES, BINS = 5, 120
grid = torch.linspace(0, 1, BINS)
centres = torch.rand(CLASSES, 4)


def spectra(n, noise):
    y = torch.randint(0, CLASSES, (n,))
    amp = 0.5 + torch.rand(n, 4, 1)
    c = centres[y].unsqueeze(-1) + 0.012 * torch.randn(n, 4, 1)
    x = (amp * torch.exp(-((grid - c) / 0.03) ** 2)).sum(1)
    # a strong peak of the host rock at a random place
    x = x + 2 * torch.exp(-((grid - torch.rand(n, 1)) / 0.05) ** 2)
    return x + noise * torch.randn(n, BINS), y


train = TensorDataset(*spectra(3000, 0.75))
xv, yv = spectra(26, 0.75)
xt, yt = spectra(3000, 0.75)


class SpectraNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(1, 12, 7, padding=3), nn.ReLU(), nn.MaxPool1d(3),
                                  nn.Conv1d(12, 16, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2))
        self.fc = nn.Linear(16 * 20, CLASSES)
        self.drop = nn.Dropout(0.4)

    def forward(self, x):
        return self.fc(self.drop(self.conv(x[:, None]).flatten(1)))


net = SpectraNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)
lossf = nn.CrossEntropyLoss()
for epoch in range(16):
    net.train()
    s = 0.0
    for x, y in DataLoader(train, 64, shuffle=True):
        opt.zero_grad()
        l = lossf(net(x), y)
        l.backward()
        opt.step()
        s += l.item() * len(y)
    net.eval()
    with torch.no_grad():
        out = net(xv)
    print(f"epoch {epoch:2d} train loss {s / len(train):.3f} | certified specimens: loss {lossf(out, yv):.3f} right {(out.argmax(1) == yv).sum()}/26")
with torch.no_grad():
    print(f"synthetic test spectra accuracy {(net(xt).argmax(1) == yt).float().mean():.3f}")
