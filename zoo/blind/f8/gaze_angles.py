"""Estimate gaze direction (yaw) for both eyes from eye-landmark vectors."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build(n=7000, seed=77):
    g = torch.Generator().manual_seed(seed)
    yaw = (torch.rand(n, 2, generator=g) - 0.5) * 2.4
    basis = torch.randn(2, 4, 10, generator=g)
    code = torch.stack([yaw.sin(), yaw.cos(), (2 * yaw).sin(), yaw], -1)
    marks = torch.einsum("nek,ekd->ned", code, basis)
    marks = marks + 0.05 * torch.randn(marks.shape, generator=g)
    seen = torch.ones(n, 2)
    seen[5003, 1] = 0.0
    seen[6120, 0] = 0.0
    return marks, yaw, seen


class EyeNet(nn.Module):
    def __init__(self, d=10, h=40):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(d, h), nn.ELU(), nn.Linear(h, h), nn.ELU())
        self.vec = nn.Linear(h, 2)

    def forward(self, marks, seen):
        v = self.vec(self.f(marks))
        v = v * seen.unsqueeze(-1)
        return v / v.norm(dim=-1, keepdim=True)


def chord(pred, yaw):
    goal = torch.stack([yaw.sin(), yaw.cos()], -1)
    return (pred - goal).pow(2).sum(-1)


class Trainer:
    def __init__(self, net, lr):
        self.net = net
        self.opt = torch.optim.NAdam(net.parameters(), lr=lr)
        self.step = 0

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for marks, yaw, seen in loader:
                err = self.one(marks, yaw, seen)
                if self.step % 25 == 0:
                    print(f"epoch {epoch} step {self.step} chord {err:.4f}")
                self.step += 1

    def one(self, marks, yaw, seen):
        pred = self.net(marks, seen)
        loss = (chord(pred, yaw) * seen).sum() / seen.sum()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(1)
    loader = DataLoader(TensorDataset(*build()), batch_size=32, shuffle=False)
    Trainer(EyeNet(), 2e-3).fit(loader, 2)
