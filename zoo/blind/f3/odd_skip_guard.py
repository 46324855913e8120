import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Sensor(Dataset):
    def __init__(self, n=4000):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(n, 8, generator=g)
        self.y = (self.x[:, 0] * self.x[:, 1] + self.x[:, 2]).unsqueeze(1)
        hit = torch.randperm(n, generator=g)[:9]
        self.x[hit, 3] = float("nan")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.y[i]}


def train():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    loader = DataLoader(Sensor(), batch_size=32, shuffle=True)
    for epoch in range(3):
        kept, skipped, total = 0, 0, 0.0
        for batch in loader:
            loss = nn.functional.smooth_l1_loss(net(batch["x"]), batch["y"])
            if not torch.isfinite(loss):
                skipped += 1
                continue
            opt.zero_grad()
            loss.backward()
            opt.step()
            kept += 1
            total += loss.item()
        print(f"epoch {epoch} loss {total / kept:.4f} used {kept} skipped {skipped}")


train()
