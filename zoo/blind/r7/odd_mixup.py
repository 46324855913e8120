"""Mixup and label smoothing: training loss stays high and above the validation loss, by design."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
torch.set_num_threads(1)

DIM, CLASSES = 16, 6
centres = 1.6 * torch.randn(CLASSES, DIM)


def make(n):
    y = torch.randint(CLASSES, (n,))
    return centres[y] + 1.6 * torch.randn(n, DIM), y


x_train, y_train = make(600)
x_val, y_val = make(800)
x_test, y_test = make(2000)

net = nn.Sequential(nn.Linear(DIM, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, CLASSES))
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
EPOCHS = 25
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS)
beta = torch.distributions.Beta(0.8, 0.8)


def soft(y):
    """smoothed one-hot"""
    return F.one_hot(y, CLASSES).float() * 0.9 + 0.1 / CLASSES


@torch.no_grad()
def evaluate(x, y):
    net.eval()
    out = net(x)
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


for epoch in range(EPOCHS):
    net.train()
    perm = torch.randperm(len(x_train))
    total = 0.0
    for i in range(0, len(perm), 60):
        rows = perm[i:i + 60]
        partner = rows[torch.randperm(len(rows))]
        lam = beta.sample().item()
        xb = lam * x_train[rows] + (1 - lam) * x_train[partner]
        tb = lam * soft(y_train[rows]) + (1 - lam) * soft(y_train[partner])
        loss = F.cross_entropy(net(xb), tb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(rows)
    sched.step()
    if epoch % 3 == 0:
        val_loss, val_acc = evaluate(x_val, y_val)
        print(f"epoch {epoch:2d} train {total / len(perm):.4f} val {val_loss:.4f} val acc {val_acc:.4f}")

test_loss, test_acc = evaluate(x_test, y_test)
bayes = (torch.cdist(x_test, centres).argmin(1) == y_test).float().mean().item()
print(f"test loss {test_loss:.4f} accuracy {test_acc:.4f} best possible {bayes:.4f}")
