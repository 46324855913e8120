"""Online regression where some batches come from a much noisier sensor."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def batch(step, g, w):
    x = torch.randn(48, 12, generator=g)
    y = torch.tanh(x @ w) + 0.05 * torch.randn(48, generator=g)
    if step % 70 == 69:
        y = y + 30 * torch.randn(48, generator=g)
    return x, y


def main(steps=400):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(5)
    w = torch.randn(12, generator=g) / 3
    net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(steps):
        x, y = batch(step, g, w)
        loss = F.mse_loss(net(x).squeeze(-1), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        opt.step()
        if step % 10 == 9:
            print(f"step {step:4d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
