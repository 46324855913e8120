import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, g):
        return g


class QConv(nn.Conv2d):
    def forward(self, x):
        flat = self.weight.flatten(1)
        scale = flat.abs().amax(1) / 7.0
        q = Round.apply(self.weight / scale.view(-1, 1, 1, 1)).clamp(-7, 7)
        return F.conv2d(x, q * scale.view(-1, 1, 1, 1), self.bias, self.stride, self.padding)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = QConv(1, 12, 3, padding=1)
        self.c2 = QConv(12, 16, 3, padding=1, stride=2)
        self.fc = nn.Linear(16 * 36, 4)

    def forward(self, x):
        h = F.relu(self.c1(x))
        h = F.relu(self.c2(h))
        return self.fc(h.flatten(1))


def batch(n):
    y = torch.randint(0, 4, (n,))
    x = 1.4 * torch.randn(n, 1, 12, 12)
    for k in range(4):
        r, c = divmod(k, 2)
        x[y == k, :, r * 6:r * 6 + 6, c * 6:c * 6 + 6] += 0.35
    return x, y


@torch.no_grad()
def prune(model, sparsity):
    allw = torch.cat([m.weight.abs().flatten() for m in model.modules() if isinstance(m, QConv)])
    thr = allw.kthvalue(max(1, int(sparsity * len(allw)))).values
    for m in model.modules():
        if isinstance(m, QConv):
            m.weight[m.weight.abs() <= thr] = 0.0


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
schedule = {40: 0.3, 80: 0.5, 120: 0.7, 160: 0.85, 200: 0.94}
for step in range(260):
    if step in schedule:
        prune(net, schedule[step])
    x, y = batch(48)
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(step, round(loss.item(), 4))
