"""Next-purchase prediction from shopping baskets with attention pooling."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

N_ITEMS, MAX_LEN, PAD = 60, 8, 0


class Baskets(Dataset):
    def __init__(self, n=6000, seed=3):
        g = torch.Generator().manual_seed(seed)
        group = torch.randint(0, 6, (n,), generator=g)
        size = torch.randint(2, MAX_LEN + 1, (n,), generator=g)
        self.rows = []
        for i in range(n):
            low = 1 + int(group[i]) * 9
            items = low + torch.randint(0, 9, (int(size[i]),), generator=g)
            noise = torch.rand(items.shape, generator=g) < 0.15
            items[noise] = torch.randint(1, N_ITEMS, (int(noise.sum()),), generator=g)
            if i == 5391:
                items = items[:0]
            row = torch.full((MAX_LEN,), PAD)
            row[: len(items)] = items
            self.rows.append((row, int(group[i])))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class Pool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q = nn.Parameter(torch.randn(dim) * 0.1)
        self.k = nn.Linear(dim, dim)
        self.scale = dim ** -0.5

    def forward(self, h, keep):
        score = (self.k(h) @ self.q) * self.scale
        score = score.masked_fill(~keep, float("-inf"))
        w = torch.softmax(score, dim=1)
        return torch.einsum("bl,bld->bd", w, h)


class Net(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.emb = nn.Embedding(N_ITEMS, dim, padding_idx=PAD)
        self.pool = Pool(dim)
        self.out = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 32), nn.GELU(), nn.Linear(32, 6))

    def forward(self, items):
        keep = items != PAD
        return self.out(self.pool(self.emb(items), keep))


def train():
    torch.manual_seed(8)
    loader = DataLoader(Baskets(), batch_size=24, shuffle=True,
                        generator=torch.Generator().manual_seed(17))
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.15, momentum=0.9)
    crit = nn.CrossEntropyLoss(label_smoothing=0.05)
    step, ema = 0, None
    for epoch in range(2):
        for items, label in loader:
            loss = crit(net(items), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema = loss.item() if ema is None else 0.9 * ema + 0.1 * loss.item()
            if step % 30 == 0:
                print(f"epoch {epoch} step {step} loss {ema:.4f}")
            step += 1
    return net


if __name__ == "__main__":
    train()
