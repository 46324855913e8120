"""Cosine warm restarts with snapshots: loss and learning rate jump up at each restart, by design."""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(25)
torch.set_num_threads(1)


def make(n):
    x = torch.rand(n, 2) * 4 - 2
    r = x.norm(dim=1)
    y = ((r * 1.5).floor().long() + (x[:, 0] > 0).long()) % 3
    return x, y


(x_train, y_train), (x_val, y_val), (x_test, y_test) = make(3000), make(600), make(1500)
net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
CYCLE, CYCLES, BATCH = 7, 3, 75
per_epoch = len(x_train) // BATCH
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=CYCLE * per_epoch)
snapshots = []


@torch.no_grad()
def evaluate(models, x, y):
    probs = torch.stack([F.softmax(m(x), dim=1) for m in models]).mean(0)
    return F.nll_loss(probs.clamp(min=1e-8).log(), y).item(), (probs.argmax(1) == y).float().mean().item()


for epoch in range(CYCLE * CYCLES):
    perm, total = torch.randperm(len(x_train)), 0.0
    lr_first = opt.param_groups[0]["lr"]
    for i in range(0, len(perm), BATCH):
        rows = perm[i:i + BATCH]
        loss = F.cross_entropy(net(x_train[rows]), y_train[rows])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        opt.step()
        sched.step()
        total += loss.item() * len(rows)
    val_loss, val_acc = evaluate([net], x_val, y_val)
    print(f"epoch {epoch:2d} lr {lr_first:.3f} train {total / len(perm):.4f} val {val_loss:.4f} acc {val_acc:.4f}")
    if (epoch + 1) % CYCLE == 0:
        snapshots.append(copy.deepcopy(net))

for k, snap in enumerate(snapshots):
    print(f"snapshot {k} test loss {evaluate([snap], x_test, y_test)[0]:.4f}")
test_loss, test_acc = evaluate(snapshots[1:], x_test, y_test)
print(f"ensemble of the last two: test loss {test_loss:.4f} accuracy {test_acc:.4f}")
