"""Matrix completion of a student x item table. The loss is a mean over every cell of the table, so the gradient of one
row is smaller by the number of rows; plain SGD therefore runs with lr = 20."""
import torch

torch.manual_seed(2)
n, m, k = 150, 120, 5
truth = torch.randn(n, k) @ torch.randn(k, m) / k ** 0.5
table = truth + 0.1 * torch.randn(n, m)
seen = torch.rand(n, m) < 0.5
U = (0.1 * torch.randn(n, k)).requires_grad_()
V = (0.1 * torch.randn(m, k)).requires_grad_()
opt = torch.optim.SGD([U, V], lr=20.0, momentum=0.9)
count = float(n * m)
for it in range(1, 401):
    opt.zero_grad()
    gap = (U @ V.T - table) * seen
    loss = gap.pow(2).sum() / count + 1e-5 * (U.pow(2).mean() + V.pow(2).mean())
    loss.backward()
    opt.step()
    if it % 50 == 0:
        with torch.no_grad():
            miss = ((U @ V.T - truth)[~seen]).pow(2).mean().sqrt()
            base = truth[~seen].std()
        print(f"it {it} loss {loss.item():.5f} rmse on unseen cells {miss.item():.4f} (std {base.item():.4f})")
