"""Logistic-map forecasting with a vanilla RNN; the norm of the gradient is limited before every update."""
import torch
import torch.nn as nn

torch.manual_seed(18)


def series(n, length):
    x = torch.rand(n) * 0.8 + 0.1
    out = []
    for _ in range(length + 1):
        out.append(x)
        x = 3.9 * x * (1 - x)
    return torch.stack(out, 1)


class Net(nn.Module):
    def __init__(self, h=48):
        super().__init__()
        self.rnn = nn.RNN(1, h, batch_first=True)
        self.out = nn.Linear(h, 1)
        nn.init.orthogonal_(self.rnn.weight_hh_l0, gain=1.6)

    def forward(self, x):
        return self.out(self.rnn(x)[0])


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(150):
    s = series(16, 30)
    loss = 100 * nn.functional.mse_loss(net(s[:, :-1, None]).squeeze(-1), s[:, 1:])
    opt.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    if step % 10 == 0:
        print(f"step {step:3d} loss {loss.item():8.3f} grad norm {norm.item():10.2f}")
