"""Matrix completion with plain SGD. Each embedding row is touched by only a tiny share of the mean
loss, hence the large step size."""
import torch

torch.manual_seed(2)
m, n, k = 120, 90, 3
truth = torch.randn(m, k) @ torch.randn(k, n) / k ** 0.5
mask = torch.rand(m, n) < 0.45
rows, cols = mask.nonzero(as_tuple=True)
vals = truth[rows, cols] + 0.05 * torch.randn(len(rows))
cut = int(0.9 * len(rows))
perm = torch.randperm(len(rows))
tr, te = perm[:cut], perm[cut:]
U = torch.nn.Parameter(0.3 * torch.randn(m, k))
V = torch.nn.Parameter(0.3 * torch.randn(n, k))
sgd = torch.optim.SGD([U, V], lr=20.0)
for step in range(500):
    pred = (U[rows[tr]] * V[cols[tr]]).sum(1)
    loss = (pred - vals[tr]).square().mean()
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    if step % 100 == 0 or step == 499:
        with torch.no_grad():
            t = ((U[rows[te]] * V[cols[te]]).sum(1) - vals[te]).square().mean()
        print(f"{step:4d} train {loss.item():.4f} test {t.item():.4f}")
