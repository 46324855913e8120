import torch
from torch import nn

torch.manual_seed(10)
vocab, hid = 10, 48


def copy_first(n=32, T=12):
    x = torch.randint(0, vocab, (n, T))
    y = torch.cat([x[:, :1], x[:, :-1]], 1)     # previous symbol
    return x, y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.r, self.o = nn.Embedding(vocab, 16), nn.LSTM(16, hid, batch_first=True), nn.Linear(hid, vocab)

    def forward(self, x):
        return self.o(self.r(self.e(x))[0])


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=10.0)
for it in range(401):
    x, y = copy_first()
    loss = nn.functional.cross_entropy(net(x).transpose(1, 2), y)
    opt.zero_grad()
    loss.backward()
    # the step length is set by the clip: direction only
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.05)
    opt.step()
    if it % 50 == 0:
        print("it %d loss %.4f grad norm %.3f" % (it, loss.item(), norm.item()))
