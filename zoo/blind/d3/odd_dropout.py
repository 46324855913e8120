"""Wide net with dropout 0.6 and noise on inputs: evaluation looks better than training."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.metrics import accuracy_score

torch.manual_seed(15)
W = torch.randn(30, 4)


def make(n):
    x = torch.randn(n, 30)
    return x, (x @ W + 0.7 * torch.randn(n, 4)).argmax(1)


xt, yt = make(3000)
xv, yv = make(800)
net = nn.Sequential(nn.Dropout(0.3), nn.Linear(30, 256), nn.ReLU(), nn.Dropout(0.6), nn.Linear(256, 4))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
dl = DataLoader(TensorDataset(xt, yt), batch_size=64, shuffle=True, drop_last=True)
for ep in range(7):
    net.train()
    losses, guess, truth = [], [], []
    for x, y in dl:
        out = net(x)
        loss = nn.functional.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        guess += out.argmax(1).tolist()
        truth += y.tolist()
    net.eval()
    with torch.no_grad():
        o = net(xv)
    print("epoch %d | train %.3f acc %.3f | val %.3f acc %.3f" % (ep, sum(losses) / len(losses), accuracy_score(truth, guess), nn.functional.cross_entropy(o, yv).item(), accuracy_score(yv, o.argmax(1))))
