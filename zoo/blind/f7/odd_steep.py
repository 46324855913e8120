"""Recurrent parity-like task with steep dynamics and a strict norm limit."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Rec(nn.Module):
    def __init__(self, h=40):
        super().__init__()
        self.rnn = nn.RNN(2, h, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(h, 1)
        with torch.no_grad():
            self.rnn.weight_hh_l0.copy_(1.15 * torch.eye(h))

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1]).squeeze(-1)


def adding(n, t, g):
    v = torch.rand(n, t, generator=g)
    m = torch.zeros(n, t)
    m[:, 2], m[:, t - 4] = 1.0, 1.0
    return torch.stack([v, m], -1), (v * m).sum(1)


def main(steps=400):
    torch.manual_seed(1)
    g = torch.Generator().manual_seed(3)
    net = Rec()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(steps):
        x, y = adding(32, 18, g)
        loss = F.smooth_l1_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        if step % 20 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} norm before limit {norm.item():.1f}")


if __name__ == "__main__":
    main()
