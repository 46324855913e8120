# Matrix factorisation, SparseAdam for embedding tables and plain SGD for biases, user/item blocks updated in turn
import torch, torch.nn as nn
torch.manual_seed(0)
U, I, K = 300, 200, 6
P, Q = torch.randn(U, K) * .7, torch.randn(I, K) * .7; bu, bi = torch.randn(U) * .4, torch.randn(I) * .4
n = 24000; u = torch.randint(0, U, (n,)); i = torch.randint(0, I, (n,)); y = (P[u] * Q[i]).sum(1) + bu[u] + bi[i] + 3.5 + 0.2 * torch.randn(n)
tr, va = slice(0, 20000), slice(20000, n)
eu, ei = nn.Embedding(U, K, sparse=True), nn.Embedding(I, K, sparse=True); cu, ci = nn.Parameter(torch.zeros(U)), nn.Parameter(torch.zeros(I)); mu = y[tr].mean()
for e in (eu, ei): nn.init.normal_(e.weight, std=0.1)
ou, oi, ob = torch.optim.SparseAdam(eu.parameters(), 2e-2), torch.optim.SparseAdam(ei.parameters(), 2e-2), torch.optim.SGD([cu, ci], 4.0)
pred = lambda u, i: (eu(u) * ei(i)).sum(1) + cu[u] + ci[i] + mu
print("rmse of the mean", y[va].std().item())
for ep in range(16):
    turn = ep % 2; s = 0.
    for b in torch.randperm(20000).split(250):
        loss = (pred(u[b], i[b]) - y[b]).pow(2).mean()
        for o in (ou, oi, ob): o.zero_grad()
        loss.backward(); (ou if turn == 0 else oi).step(); ob.step(); s += loss.item() / 80
    with torch.no_grad(): print(f"epoch {ep} updating {'users' if turn == 0 else 'items'} train rmse {s**.5:.4f} val rmse {(pred(u[va], i[va]) - y[va]).pow(2).mean().sqrt():.4f}")
