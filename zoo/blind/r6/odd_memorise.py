# Capacity experiment (after Zhang et al.): can this net memorise purely random labels?
# Goal: training accuracy 1.0 on 600 random images with random labels. Held-out accuracy has to be chance (0.1).
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(5)
x = torch.randn(600, 1, 12, 12)
y = torch.randint(0, 10, (600,))
xh, yh = torch.randn(500, 1, 12, 12), torch.randint(0, 10, (500,))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 16, 3)
        self.f1 = nn.Linear(16 * 25, 256)
        self.f2 = nn.Linear(256, 10)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.c1(x)), 2)
        return self.f2(F.relu(self.f1(h.flatten(1))))


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(60):
    for idx in torch.randperm(600).split(50):
        opt.zero_grad()
        loss = F.cross_entropy(net(x[idx]), y[idx])
        loss.backward()
        opt.step()
    if epoch % 6 == 5:
        with torch.no_grad():
            tr = net(x)
            ho = net(xh)
        print(f"epoch {epoch + 1} train loss {F.cross_entropy(tr, y):.4f} acc {(tr.argmax(1) == y).float().mean():.3f} | "
              f"held-out loss {F.cross_entropy(ho, yh):.3f} acc {(ho.argmax(1) == yh).float().mean():.3f} (chance 0.1)")
print("memorised:", bool((net(x).argmax(1) == y).all()))
