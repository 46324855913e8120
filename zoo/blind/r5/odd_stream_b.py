"""Stateful GRU world model of a long stream: chunks in time order, hidden state carried over and detached."""
from dataclasses import dataclass
import math
import torch
from torch import nn


@dataclass
class Cfg:
    lanes: int = 16
    chunk: int = 25
    passes: int = 5
    hidden: int = 32
    lr: float = 5e-3


def stream(n, lanes, seed):
    g = torch.Generator().manual_seed(seed)
    s = torch.randn(lanes, 2, generator=g)
    rot = torch.tensor([[math.cos(0.35), -math.sin(0.35)], [math.sin(0.35), math.cos(0.35)]])
    obs, act = [], []
    for _ in range(n):
        a = torch.randn(lanes, 1, generator=g)
        obs.append(s[:, :1].clone())
        act.append(a)
        s = 0.97 * s @ rot.T + torch.cat([torch.zeros_like(a), 0.4 * a], 1)
    return torch.stack(obs, 1), torch.stack(act, 1)


class WorldModel(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.rnn = nn.GRU(2, h, batch_first=True)
        self.head = nn.Linear(h, 1)

    def forward(self, o, a, h):
        z, h = self.rnn(torch.cat([o, a], -1), h)
        return o + self.head(z), h


def main(c):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    o, a = stream(1001, c.lanes, 1)
    ov, av = stream(400, c.lanes, 2)
    net = WorldModel(c.hidden)
    opt = torch.optim.Adam(net.parameters(), lr=c.lr)
    for k in range(c.passes):
        h, tot, cnt = None, 0.0, 0
        for t in range(0, 1000, c.chunk):
            pred, h = net(o[:, t:t + c.chunk], a[:, t:t + c.chunk], h)
            h = h.detach()
            loss = (pred - o[:, t + 1:t + c.chunk + 1]).pow(2).mean()
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            tot, cnt = tot + loss.item(), cnt + 1
        with torch.no_grad():
            p, _ = net(ov[:, :-1], av[:, :-1], None)
            e = (p - ov[:, 1:])[:, 10:].pow(2).mean()
            r2 = 1 - e / ov[:, 11:].var()
        print(f"pass {k}  one-step mse {tot / cnt:.4f}  held-out R2 {r2:.4f}")
    print(f"final held-out R2 {r2:.4f}")


main(Cfg())
