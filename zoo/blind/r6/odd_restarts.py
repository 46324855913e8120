"""SGDR: cosine warm restarts with snapshot ensembling; the loss jumps up at every restart by design.
Goal: the ensemble's log loss is below the mean of the snapshots' and its accuracy above 0.93."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

torch.set_num_threads(1)
torch.manual_seed(15)
X, Y = make_classification(6000, 20, n_informative=10, n_classes=4, n_clusters_per_class=2, class_sep=1.6, flip_y=0.01, random_state=15)
xtr, xte, ytr, yte = train_test_split(torch.tensor(X, dtype=torch.float32), torch.tensor(Y), test_size=0.3, random_state=0)
mu, sd = xtr.mean(0), xtr.std(0)
xtr, xte = (xtr - mu) / sd, (xte - mu) / sd
net = nn.Sequential(nn.Linear(20, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9, weight_decay=1e-3)
steps_per_epoch = 42
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=8 * steps_per_epoch, eta_min=1e-4)
probs = []
for epoch in range(1, 41):
    tot = 0.0
    for idx in torch.randperm(len(xtr)).split(100):
        loss = F.cross_entropy(net(xtr[idx]), ytr[idx])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        opt.step()
        sched.step()
        tot += loss.item() / steps_per_epoch
    with torch.no_grad():
        out = net(xte)
    print(f"epoch {epoch} lr {opt.param_groups[0]['lr']:.4f} train {tot:.4f} test {F.cross_entropy(out, yte):.4f} acc {(out.argmax(1) == yte).float().mean():.3f}")
    if epoch % 8 == 0:
        probs.append(out.softmax(1))
ens = torch.stack(probs).mean(0)
single = [F.nll_loss(p.log(), yte).item() for p in probs]
print(f"snapshot log losses {[round(s, 3) for s in single]}; ensemble {F.nll_loss(ens.log(), yte):.4f} acc {(ens.argmax(1) == yte).float().mean():.3f}")
