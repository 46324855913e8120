import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(57)


class Frames(torch.utils.data.Dataset):
    def __init__(self, n=3000):
        g = torch.Generator().manual_seed(1)
        self.y = torch.randint(0, 4, (n,), generator=g)
        self.x = torch.randn(n, 16, generator=g)
        self.x[torch.arange(n), self.y] += 2.0
        self.x[[640, 1501, 2222], 3] = float("nan")
        self.x[2800] *= 1e30

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loader = torch.utils.data.DataLoader(Frames(), batch_size=20, shuffle=True)
skipped = 0
for epoch in range(2):
    for k, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        if not torch.isfinite(loss) or loss > 1e4:
            skipped += 1
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
        if k % 25 == 0:
            print(f"epoch {epoch} batch {k} loss {loss.item():.4f} skipped {skipped}")

print("batches skipped in total:", skipped)
