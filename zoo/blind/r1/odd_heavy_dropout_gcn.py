import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)
n, k = 300, 3
y = torch.arange(n) % k
p = torch.where(y[:, None] == y, 0.08, 0.01)
A = (torch.rand(n, n) < p).float().triu(1)
A = A + A.t() + torch.eye(n)
A = A / A.sum(1, keepdim=True)
X = F.one_hot(y, k).float() @ torch.randn(k, 40) * 0.5 + torch.randn(n, 40)
tr = torch.randperm(n)[:60]
te = torch.ones(n, dtype=torch.bool)
te[tr] = False
l1, l2 = nn.Linear(40, 64), nn.Linear(64, k)
opt = torch.optim.Adam([*l1.parameters(), *l2.parameters()], lr=0.01, weight_decay=1e-3)


def forward(train):
    h = F.dropout(X, 0.7, train)
    h = F.dropout(F.relu(A @ l1(h)), 0.7, train)
    return A @ l2(h)


for e in range(151):
    loss = F.cross_entropy(forward(True)[tr], y[tr])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if e % 25 == 0:
        with torch.no_grad():
            o = forward(False)
        print(f"{e:3d} train (with dropout) {loss.item():.3f}  test {F.cross_entropy(o[te], y[te]).item():.3f}  acc {(o.argmax(1) == y)[te].float().mean():.3f}")
