import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader


class Clusters(Dataset):
    """Small atom clusters with a pair-potential energy."""

    def __init__(self, n=640, atoms=6, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.kind = torch.randint(0, 3, (n, atoms), generator=g)
        self.pos = torch.randn(n, atoms, 3, generator=g) * 1.5
        self.kind[431, 4] = self.kind[431, 1]
        self.pos[431, 4] = self.pos[431, 1]
        i, j = torch.triu_indices(atoms, atoms, 1)
        r = (self.pos[:, i] - self.pos[:, j]).norm(dim=-1)
        q = self.kind.float() - 1
        self.energy = (q[:, i] * q[:, j] * torch.exp(-r)).sum(1) + 0.1 * r.mean(1)

    def __len__(self):
        return len(self.energy)

    def __getitem__(self, k):
        return self.kind[k], self.pos[k], self.energy[k]


class Layer(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.msg = nn.Sequential(nn.Linear(2 * h + 1, h), nn.SiLU(), nn.Linear(h, h), nn.SiLU())
        self.gate = nn.Linear(h, 1)
        self.upd = nn.Linear(2 * h, h)

    def forward(self, f, x, src, dst):
        diff = x[:, dst] - x[:, src]
        dist = (diff ** 2).sum(-1, keepdim=True).sqrt()
        m = self.msg(torch.cat([f[:, dst], f[:, src], dist], -1))
        shift = diff * torch.tanh(self.gate(m)) * 0.1
        x = x.index_add(1, dst, shift)
        agg = torch.zeros_like(f).index_add(1, dst, m)
        return f + self.upd(torch.cat([f, agg], -1)), x


class Net(nn.Module):
    def __init__(self, h=20):
        super().__init__()
        self.emb = nn.Embedding(3, h)
        self.layers = nn.ModuleList([Layer(h) for _ in range(2)])
        self.out = nn.Linear(h, 1)

    def forward(self, kind, x, src, dst):
        f = self.emb(kind)
        for layer in self.layers:
            f, x = layer(f, x, src, dst)
        return self.out(f).sum((1, 2))


torch.manual_seed(1)
src, dst = torch.where(~torch.eye(6, dtype=torch.bool))
loader = DataLoader(Clusters(), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(6))
model = Net()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
step = 0
for epoch in range(2):
    for kind, pos, e in loader:
        loss = nn.functional.l1_loss(model(kind, pos, src, dst), e)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"step {step} mae {loss.item():.4f}")
        step += 1
