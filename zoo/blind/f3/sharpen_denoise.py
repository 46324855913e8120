import torch
import torch.nn as nn

torch.manual_seed(1)
SIZE = 12
mask = torch.zeros(1, 1, SIZE, SIZE)
mask[..., 1:-1, 1:-1] = 1.0


def images(n):
    x = torch.zeros(n, 1, SIZE, SIZE)
    for i in range(n):
        r, c = torch.randint(2, SIZE - 4, (2,)).tolist()
        x[i, 0, r:r + 3, c:c + 3] = 1.0
    return x


class Denoise(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, padding=1)
        self.c2 = nn.Conv2d(8, 8, 3, padding=1)
        self.c3 = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x):
        return self.c3(torch.relu(self.c2(torch.relu(self.c1(x)))))


def exponent(step, total):
    return 2.0 - 1.5 * step / total


def robust(pred, target, p):
    r = (pred - target) * mask
    return r.abs().pow(p).mean()


def main(total=300):
    net = Denoise()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    bank = images(400)
    for step in range(total):
        clean = bank[torch.randint(0, 400, (16,))]
        noisy = clean + 0.4 * torch.randn_like(clean)
        p = exponent(step, total)
        loss = robust(net(noisy), clean, p)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 0:
            print(f"step {step} p {p:.2f} loss {loss.item():.4f}")


main()
