"""Self-supervised embeddings of sensor windows: invariance + decorrelation of standardized features."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

N = 32 * 45 + 1
latent = torch.randn(N, 4)
windows = torch.tanh(latent @ torch.randn(4, 24)) + 0.1 * torch.randn(N, 24)
loader = DataLoader(TensorDataset(windows), batch_size=32, shuffle=True)

encoder = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 16)).to(device)
opt = torch.optim.AdamW(encoder.parameters(), lr=2e-3, weight_decay=1e-3)


def augment(x):
    return x + 0.2 * torch.randn_like(x), x * (0.8 + 0.4 * torch.rand_like(x))


def standardize(z):
    return (z - z.mean(0)) / (z.std(0) + 1e-4)


def redundancy_loss(z1, z2, lam=0.02):
    c = standardize(z1).T @ standardize(z2) / len(z1)
    on = (torch.diagonal(c) - 1).pow(2).sum()
    off = c.pow(2).sum() - torch.diagonal(c).pow(2).sum()
    return on + lam * off


for epoch in range(4):
    total, batches = 0.0, 0
    for (x,) in loader:
        a, b = augment(x.to(device))
        with torch.autocast(device, dtype=torch.bfloat16):
            za, zb = encoder(a), encoder(b)
        loss = redundancy_loss(za.float(), zb.float())
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        batches += 1
        if batches % 15 == 0:
            print(f"epoch {epoch} batch {batches} loss {loss.item():.4f}")
    print(f"epoch {epoch} mean loss {total / batches:.4f}")
