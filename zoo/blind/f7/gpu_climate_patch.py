"""Downscale coarse temperature anomaly patches to a fine grid with a residual CNN."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class AnomalyArchive:
    """Months of gridded anomalies cut into patches; stations report on the fine grid."""

    def __init__(self, months=24, seed=0, size=12):
        self.g = torch.Generator().manual_seed(seed)
        self.months, self.size = months, size

    def month(self, m):
        coarse = torch.randn(300, 1, 4, 4, generator=self.g)
        fine = F.interpolate(coarse, size=self.size, mode="bicubic", align_corners=False)
        relief = 0.3 * torch.sin(torch.linspace(0, 6.28, self.size)).view(1, 1, 1, -1)
        fine = fine * (1 + relief) + 0.05 * torch.randn(fine.shape, generator=self.g)
        if m == 13:
            fine[211, 0, 7, 2:5] = 9.96921e36
        return coarse, fine

    def batches(self, size):
        for m in range(self.months):
            c, f = self.month(m)
            for i in range(0, len(c), size):
                yield m, c[i:i + size], f[i:i + size]


class Downscale(nn.Module):
    def __init__(self, ch=12):
        super().__init__()
        self.c1 = nn.Conv2d(1, ch, 3, padding=1)
        self.c2 = nn.Conv2d(ch, ch, 3, padding=1)
        self.c3 = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x, size):
        up = F.interpolate(x, size=size, mode="bilinear", align_corners=False)
        h = F.relu(self.c1(up))
        return up + self.c3(F.relu(self.c2(h)))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    arch, net = AnomalyArchive(seed=3), Downscale().to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    sched = torch.optim.lr_scheduler.StepLR(opt, 150, 0.5)
    for step, (m, coarse, fine) in enumerate(arch.batches(20)):
        coarse, fine = coarse.to(device), fine.to(device)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            pred = net(coarse, fine.shape[-1])
        loss = ((pred.float() - fine) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 20 == 0:
            print(f"month {m:2d} step {step:4d} mse {loss.item():.5f}")


if __name__ == "__main__":
    main()
