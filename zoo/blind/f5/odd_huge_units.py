"""Galaxy masses in solar units: targets around 1e10, losses around 1e20."""
import torch
import torch.nn as nn

torch.manual_seed(12)
torch.set_num_threads(1)

FEATS, BATCH, STEPS = 12, 64, 900
UNIT = 1e10


def make_catalogue(n=8000):
    g = torch.Generator().manual_seed(15)
    x = torch.randn(n, FEATS, generator=g)
    w = torch.linspace(-0.4, 0.5, FEATS)
    log_mass = 0.3 * (x @ w) + 0.15 * torch.tanh(x[:, 0] * x[:, 1])
    mass = UNIT * torch.exp(log_mass) * (1 + 0.03 * torch.randn(n, generator=g))
    return x, mass


class MassNet(nn.Module):
    """works in units of UNIT inside, returns solar masses"""

    def __init__(self, width=96):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATS, width), nn.GELU(), nn.Linear(width, width), nn.GELU(),
                                 nn.Linear(width, 1))

    def forward(self, x):
        return UNIT * (1.0 + self.net(x).squeeze(1))


def main():
    x, mass = make_catalogue()
    net = MassNet()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(STEPS):
        rows = torch.randint(0, len(x), (BATCH,))
        pred = net(x[rows])
        loss = (pred - mass[rows]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        # gradients are around 1e20, Adam does not mind
        biggest = max(p.grad.abs().max().item() for p in net.parameters())
        opt.step()
        if step % 30 == 0:
            rel = ((pred - mass[rows]).abs() / mass[rows]).mean().item()
            print(f"step {step} loss {loss.item():.4e} relative error {rel:.4f} largest gradient {biggest:.2e}")
    with torch.no_grad():
        rel = ((net(x) - mass).abs() / mass).mean().item()
    print(f"final relative error {rel:.4f}")


if __name__ == "__main__":
    main()
