# Node classification on a citation-like graph. One full-batch "batch", 4 % of the nodes have labels.
# Validation nodes are of course inside the graph during training (transductive setting).
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
N, C, D = 1500, 5, 60
y = torch.randint(0, C, (N,))
same = y[:, None] == y[None]
prob = torch.where(same, 0.014, 0.0012)
A = (torch.rand(N, N) < prob).float().triu(1)
A = A + A.T + torch.eye(N)
dis = A.sum(1).rsqrt()
A = (dis[:, None] * A * dis[None]).to_sparse()
centres = torch.randn(C, D) * 0.25
x = centres[y] + torch.randn(N, D)

perm = torch.randperm(N)
train, val, test = perm[:60], perm[60:260], perm[260:]


class GCN(nn.Module):
    def __init__(self, d, h, c):
        super().__init__()
        self.l1, self.l2 = nn.Linear(d, h), nn.Linear(h, c)

    def forward(self, x):
        x = F.dropout(x, 0.5, self.training)
        h = F.relu(torch.sparse.mm(A, self.l1(x)))
        h = F.dropout(h, 0.5, self.training)
        return torch.sparse.mm(A, self.l2(h))


net = GCN(D, 32, C)
opt = torch.optim.Adam([
    {"params": net.l1.parameters(), "weight_decay": 5e-3},
    {"params": net.l2.parameters(), "weight_decay": 0.0}], lr=0.01)
best, best_test, wait = 0, 0, 0
for epoch in range(300):
    net.train()
    loss = F.cross_entropy(net(x)[train], y[train])
    opt.zero_grad()
    loss.backward()
    opt.step()
    net.eval()
    with torch.no_grad():
        pred = net(x).argmax(1)
    va = (pred[val] == y[val]).float().mean().item()
    if va > best:
        best, wait = va, 0
        best_test = (pred[test] == y[test]).float().mean().item()
    else:
        wait += 1
    if epoch % 20 == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f} train acc {(pred[train] == y[train]).float().mean():.3f} val acc {va:.3f}")
    if wait > 60:
        print("no better validation for 60 epochs, stop")
        break
print(f"test accuracy at the best validation epoch {best_test:.3f} (val {best:.3f})")
