# Link prediction by matrix factorisation; parameters are raw tensors and the update is written out by hand.
import numpy as np
import torch
from sklearn.metrics import roc_auc_score

torch.manual_seed(6)
torch.set_num_threads(1)
rng = np.random.default_rng(6)
U, I, K = 300, 200, 4
tu, ti = rng.normal(size=(U, K)), rng.normal(size=(I, K))
aff = tu @ ti.T
like = np.argwhere(aff + 0.5 * rng.normal(size=aff.shape) > 2.2)
rng.shuffle(like)
cut = len(like) // 10
test, train = torch.tensor(like[:cut]), torch.tensor(like[cut:])
yes = np.zeros((U, I), bool)
yes[like[:, 0], like[:, 1]] = True
no = np.argwhere(~yes)
test_no = torch.tensor(no[rng.choice(len(no), cut, replace=False)])

P = (0.1 * torch.randn(U, 5)).requires_grad_()
Q = (0.1 * torch.randn(I, 5)).requires_grad_()
b = torch.zeros(I, requires_grad=True)
score = lambda e: (P[e[:, 0]] * Q[e[:, 1]]).sum(1) + b[e[:, 1]]
lr, reg = 30.0, 1e-4

for step in range(1, 1501):
    e = train[torch.randint(0, len(train), (512,))]
    n = torch.stack([e[:, 0], torch.randint(0, I, (512,))], 1)
    loss = torch.nn.functional.softplus(score(n) - score(e)).mean()
    gs = torch.autograd.grad(loss, (P, Q, b))
    rate = lr * (1 - step / 1501)
    with torch.no_grad():
        for w, g in zip((P, Q, b), gs):
            w -= rate * (g + reg * w)
    if step % 250 == 0 or step == 1:
        with torch.no_grad():
            s = torch.cat([score(test), score(test_no)]).numpy()
        auc = roc_auc_score(np.r_[np.ones(cut), np.zeros(cut)], s)
        print(f"step {step:4d}  pairwise loss {loss.item():.4f}  test AUC {auc:.4f}")
print(f"final test AUC {auc:.4f}")
