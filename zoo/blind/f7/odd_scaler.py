"""Regression under float16 autocast with a gradient scaler that starts very high."""
import torch
import torch.nn as nn


def main(steps=300):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    w = torch.randn(16, generator=g)
    net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 24, growth_interval=40)
    skipped = 0
    for step in range(steps):
        x = torch.randn(64, 16, generator=g)
        y = torch.sin(x @ w * 0.15) + 0.05 * torch.randn(64, generator=g)
        with torch.autocast("cpu", dtype=torch.float16):
            pred = net(x).squeeze(-1)
        loss = nn.functional.mse_loss(pred.float(), y)
        opt.zero_grad()
        before = scaler.get_scale()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        skipped += int(scaler.get_scale() < before)
        if step % 20 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} scale {scaler.get_scale():.0f} skipped {skipped}")


if __name__ == "__main__":
    main()
