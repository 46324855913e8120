"""Depth estimation from sparse cues: the loss definition changes twice, the curve has steps."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(16)
torch.set_num_threads(1)

SIZE, BATCH, STEPS = 16, 16, 420


def scenes(hard):
    coarse = torch.randn(BATCH, 1, 4, 4)
    depth = F.interpolate(coarse, SIZE, mode="bilinear", align_corners=False)
    if hard:
        depth = depth + 0.5 * F.interpolate(torch.randn(BATCH, 1, 8, 8), SIZE, mode="nearest")
    noise = 0.2 * torch.randn_like(depth)
    keep = (torch.rand_like(depth) < 0.6).float()
    return torch.cat([(depth + noise) * keep, keep], 1), depth


class Net(nn.Module):
    def __init__(self, c=20):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(2, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU(),
                                 nn.Conv2d(c, 1, 3, padding=1))

    def forward(self, x):
        return self.net(x)


def edges(d):
    return d[..., :, 1:] - d[..., :, :-1], d[..., 1:, :] - d[..., :-1, :]


def objective(pred, depth, step):
    loss = F.mse_loss(pred, depth)
    if step >= 140:
        # from here on the total over pixels, with an edge term
        gx, gy = edges(pred)
        tx, ty = edges(depth)
        loss = SIZE * SIZE * (loss + 0.5 * (F.l1_loss(gx, tx) + F.l1_loss(gy, ty)))
    return loss


def main():
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(STEPS):
        x, depth = scenes(hard=step >= 280)
        pred = net(x)
        loss = objective(pred, depth, step)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 14 == 0:
            rmse = F.mse_loss(pred, depth).sqrt().item()
            print(f"step {step} loss {loss.item():.4f} rmse {rmse:.4f}")


if __name__ == "__main__":
    main()
