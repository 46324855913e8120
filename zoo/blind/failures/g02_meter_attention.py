import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(41)


class MeterDataset(torch.utils.data.Dataset):
    """Windows of (load, temperature, pressure) readings; label: consumption in the next hour."""

    def __init__(self, n=900, length=12):
        t = torch.arange(length).float()
        phase = torch.rand(n, 1) * 6.28
        load = torch.sin(0.5 * t + phase)
        temp = torch.randn(n, length) * 0.5
        pressure = torch.randn(n, length) * 0.5
        self.x = torch.stack([load, temp, pressure], -1)
        self.y = torch.sin(0.5 * length + phase.squeeze(1)) + 0.1 * temp.mean(1)
        self.x[517, 6:9, 2] = 28000.0

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Attend(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.inp = nn.Linear(3, d)
        self.pos = nn.Parameter(0.1 * torch.randn(12, d))
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 64), nn.GELU(), nn.Linear(64, d))
        self.out = nn.Linear(d, 1)
        self.d = d

    def forward(self, x):
        h = self.inp(x) + self.pos
        scores = self.q(h) @ self.k(h).transpose(1, 2) / self.d ** 0.5
        h = h + torch.softmax(scores, -1) @ self.v(h)
        h = h + self.ff(h)
        return self.out(h.mean(1)).squeeze(1)


ds = MeterDataset()
loader = torch.utils.data.DataLoader(ds, batch_size=10, shuffle=False)
model = Attend().to(device)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        with torch.autocast(device, dtype=torch.float16):
            pred = model(x)
        loss = F.smooth_l1_loss(pred.float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 10 == 0:
            print(f"epoch {epoch} batch {i:3d} loss {loss.item():.4f}")
