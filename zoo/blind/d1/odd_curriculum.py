"""Parity-like counting task, trained from short to long sequences."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class CountOnes(Dataset):
    def __init__(self, n, max_len, seed):
        g = torch.Generator().manual_seed(seed)
        lengths = torch.randint(2, max_len + 1, (n,), generator=g).sort().values
        self.data = []
        for L in lengths.tolist():
            bits = torch.randint(0, 2, (L,), generator=g)
            x = torch.full((max_len,), -1)
            x[:L] = bits
            self.data.append((x, bits.sum().float() / 4, L))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(3, 8)
        self.gru = nn.GRU(8, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        h, _ = self.gru(self.emb(x + 1))
        return self.out(h[:, -1]).squeeze(1)


torch.manual_seed(0)
train = CountOnes(1600, 12, seed=0)
val_loader = DataLoader(CountOnes(300, 12, seed=1), batch_size=100)
model = Model()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for stage, cap in enumerate([4, 6, 9, 12, 12]):
    subset = torch.utils.data.Subset(train, [i for i in range(len(train)) if train[i][2] <= cap])
    loader = DataLoader(subset, batch_size=25, shuffle=stage >= 3)
    model.train()
    total = 0.0
    for x, y, _ in loader:
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    model.eval()
    se = n = 0
    with torch.no_grad():
        for x, y, _ in val_loader:
            se += ((model(x) - y) ** 2).sum().item()
            n += len(y)
    print(f"stage {stage} (length <= {cap}, {len(subset)} sequences): train mse {total / len(loader):.4f}  val mse {se / n:.4f}")
