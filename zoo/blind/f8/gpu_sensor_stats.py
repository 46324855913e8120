"""Anomaly-scoring auto-encoder for machine sensors with streaming statistics."""
import torch
import torch.nn as nn


DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class StreamNorm(nn.Module):
    """Standardise with exponential moving moments of the stream."""

    def __init__(self, dim, momentum=0.05):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("m1", torch.zeros(dim))
        self.register_buffer("m2", torch.ones(dim))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.m1.lerp_(x.mean(0), self.momentum)
                self.m2.lerp_((x * x).mean(0), self.momentum)
        std = torch.sqrt(self.m2 - self.m1 * self.m1 + 1e-5)
        return (x - self.m1) / std


class AutoEncoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = StreamNorm(dim)
        self.enc = nn.Sequential(nn.Linear(dim, 16), nn.Tanh(), nn.Linear(16, 4))
        self.dec = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, dim))

    def forward(self, x):
        z = self.norm(x)
        return self.dec(self.enc(z)), z


class Machine:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.mix = torch.randn(3, 8, generator=self.g)
        self.clock = 0

    def read(self, n):
        src = torch.randn(n, 3, generator=self.g)
        x = src @ self.mix + 0.1 * torch.randn(n, 8, generator=self.g)
        x[:, 5] = 0.02 * x[:, 5] + 250.0 * (1 - 0.985 ** self.clock)   # oil temperature
        self.clock += 1
        return x


def main():
    torch.manual_seed(41)
    machine = Machine(41)
    model = AutoEncoder(8).to(DEV)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(600):
        x = machine.read(64).to(DEV)
        out, z = model(x)
        loss = (out - z).pow(2).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"step {step:4d} reconstruction {loss.item():.4f}")


if __name__ == "__main__":
    main()
