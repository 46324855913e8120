# tabular regression, layers periodically re-calibrated to unit activation scale
import argparse
import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--lr", type=float, default=3e-3)
parser.add_argument("--width", type=int, default=64)
args = parser.parse_args()

g = torch.Generator().manual_seed(11)
torch.manual_seed(11)
N = 2000
X = torch.randn(N, 10, generator=g)
X[:, 7:] = (X[:, 7:] > 0.8).float()
y = torch.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] - 0.5 * X[:, 7] + 0.1 * torch.randn(N, generator=g)


class Net(nn.Module):
    def __init__(self, d, width):
        super().__init__()
        self.l1 = nn.Linear(d, width)
        self.l2 = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.relu(self.l1(x))
        h = torch.relu(self.l2(h))
        return self.out(h).squeeze(-1)


@torch.no_grad()
def calibrate(model, xb):
    h = xb
    for layer in (model.l1, model.l2):
        a = torch.relu(layer(h))
        scale = a.std(dim=0)
        layer.weight /= scale[:, None]
        layer.bias /= scale
        h = torch.relu(layer(h))


model = Net(10, args.width)
opt = torch.optim.RMSprop(model.parameters(), lr=args.lr, weight_decay=1e-4)
ref = X[:24]
step = 0
for epoch in range(args.epochs):
    for idx in torch.randperm(N, generator=g).split(40):
        pred = model(X[idx])
        loss = ((pred - y[idx]) ** 2).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 15 == 0:
            print("step", step, "mse", round(loss.item(), 4))
        step += 1
    if epoch == 1:
        calibrate(model, ref)
