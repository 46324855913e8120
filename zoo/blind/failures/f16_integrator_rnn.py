"""Leaky-integrator identification with a recurrent state-space model; the windows get longer from stage to stage."""
import torch
import torch.nn as nn


def windows(n, length, leak=0.97):
    u = torch.randn(n, length)
    y, acc = [], torch.zeros(n)
    for t in range(length):
        acc = leak * acc + 0.2 * u[:, t]
        y.append(acc)
    return u, torch.stack(y, 1)


class StateSpace(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.A = nn.Parameter(0.9 * torch.eye(dim) + 0.02 * torch.randn(dim, dim))
        self.B = nn.Linear(1, dim, bias=False)
        self.C = nn.Linear(dim, 1)

    def forward(self, u):
        h = torch.zeros(len(u), self.A.shape[0])
        out = []
        for t in range(u.shape[1]):
            h = h @ self.A.t() + self.B(u[:, t:t + 1])
            out.append(self.C(h))
        return torch.cat(out, 1)


def train():
    torch.manual_seed(4)
    model = StateSpace()
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    step = 0
    for length in (8, 16, 32, 128):
        for _ in range(30):
            u, y = windows(16, length)
            loss = nn.functional.mse_loss(model(u), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 5 == 0:
                print(f"length {length} step {step} mse {loss.item():.5f}")
            step += 1


if __name__ == "__main__":
    train()
