# DistMult, plain SGD written by hand on two tensors; gradients are summed over the batch.
import torch

torch.manual_seed(0)
n_people, n_groups, n_rel = 120, 6, 3
group = torch.randint(0, n_groups, (n_people,))
table = torch.rand(n_rel, n_groups, n_groups) < 0.25            # which groups are linked by which relation
table = table | table.transpose(1, 2)
h, r, t = torch.meshgrid(torch.arange(n_people), torch.arange(n_rel), torch.arange(n_people), indexing="ij")
h, r, t = h.flatten(), r.flatten(), t.flatten()
truth = table[r, group[h], group[t]].float()
order = torch.randperm(len(h))
cut = int(0.6 * len(order))
train, test = order[:cut], order[cut:]

E = (0.3 * torch.randn(n_people, 16)).requires_grad_()
R = (0.3 * torch.randn(n_rel, 16)).requires_grad_()
b = torch.zeros(n_rel, requires_grad=True)
lr = 0.02


def score(i):
    return (E[h[i]] * R[r[i]] * E[t[i]]).sum(-1) + b[r[i]]


def auc(i):
    with torch.no_grad():
        s = score(i)
    rank = torch.empty(len(s))
    rank[s.argsort()] = torch.arange(len(s)).float()
    y = truth[i]
    n1, n0 = y.sum(), (1 - y).sum()
    return ((rank[y == 1].sum() - n1 * (n1 - 1) / 2) / (n1 * n0)).item()


for step in range(400):
    i = train[torch.randint(0, len(train), (256,))]
    nll = torch.nn.functional.binary_cross_entropy_with_logits(score(i), truth[i], reduction="sum")
    gE, gR, gb = torch.autograd.grad(nll, [E, R, b])
    with torch.no_grad():
        E -= lr * gE
        R -= lr * gR
        b -= lr * 0.1 * gb
    if step % 50 == 49:
        print(f"step {step + 1}  batch nll (sum) {nll.item():.1f}  test AUC {auc(test):.3f}")
