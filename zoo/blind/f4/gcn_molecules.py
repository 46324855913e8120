import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

torch.manual_seed(31)
MAXN = 14


class Molecules(Dataset):
    def __init__(self, n=2000):
        self.n = n
        g = torch.Generator().manual_seed(8)
        self.samples = []
        for i in range(n):
            k = int(torch.randint(6, MAXN + 1, (1,), generator=g))
            A = torch.zeros(MAXN, MAXN)
            for v in range(1, k):                       # random tree
                p = int(torch.randint(0, v, (1,), generator=g))
                A[v, p] = A[p, v] = 1
            for _ in range(2):                          # a couple of rings
                a, b = torch.randint(0, k, (2,), generator=g).tolist()
                if a != b:
                    A[a, b] = A[b, a] = 1
            if i == 1333:                               # salt: counter-ion
                A[k - 1, :] = 0
                A[:, k - 1] = 0
            for v in range(k, MAXN):
                A[v, v] = 1                             # padding rows
            x = torch.zeros(MAXN, 5)
            x[torch.arange(k), torch.randint(0, 5, (k,), generator=g)] = 1
            y = (A @ x)[:, 0].sum() * 0.2 - x[:, 3].sum() * 0.3
            m = (torch.arange(MAXN) < k).float()
            self.samples.append((x, A, m, y))

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.samples[i]


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(5, 32)
        self.l2 = nn.Linear(32, 32)
        self.head = nn.Linear(32, 1)

    def forward(self, x, A, m):
        d = A.sum(-1).pow(-0.5)
        L = d.unsqueeze(-1) * A * d.unsqueeze(-2)
        h = torch.relu(L @ self.l1(x))
        h = torch.relu(L @ self.l2(h))
        return self.head((h * m.unsqueeze(-1)).sum(1)).squeeze(-1)


def run():
    loader = DataLoader(Molecules(), batch_size=20)
    net = GCN()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    lossf = nn.SmoothL1Loss()
    k = 0
    for epoch in range(2):
        for x, A, m, y in loader:
            opt.zero_grad()
            loss = lossf(net(x, A, m), y)
            loss.backward()
            opt.step()
            if k % 15 == 0:
                print(k, loss.item())
            k += 1


run()
