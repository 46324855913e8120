"""Two heads, one on purpose untouched in this stage: the second is trained in a later job."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(20)
torch.set_num_threads(1)


def make(n):
    x = torch.randn(n, 10)
    kind = ((x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0.5).long())
    return x, kind


(x_train, y_train), (x_val, y_val), (x_test, y_test) = make(3000), make(600), make(1000)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.kind = nn.Linear(64, 3)
        self.price = nn.Linear(64, 1)      # reserved for stage two

    def forward(self, x, stage=1):
        h = self.body(x)
        return self.kind(h) if stage == 1 else self.price(h.detach())


net = TwoHeads()
reserved = {k: v.clone() for k, v in net.price.state_dict().items()}
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=12)


@torch.no_grad()
def evaluate(x, y):
    net.eval()
    out = net(x)
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


for epoch in range(12):
    net.train()
    perm, total = torch.randperm(len(x_train)), 0.0
    for i in range(0, len(perm), 100):
        rows = perm[i:i + 100]
        loss = F.cross_entropy(net(x_train[rows]), y_train[rows])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.item() * len(rows)
    sched.step()
    val_loss, val_acc = evaluate(x_val, y_val)
    print(f"epoch {epoch:2d} train {total / len(perm):.4f} val {val_loss:.4f} acc {val_acc:.4f}")

same = all(torch.equal(v, reserved[k]) for k, v in net.price.state_dict().items())
test_loss, test_acc = evaluate(x_test, y_test)
print(f"reserved head untouched: {same}")
print(f"test loss {test_loss:.4f} accuracy {test_acc:.4f}")
