"""Texture classification from Gram matrices of convolutional features, half precision."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(61)
torch.cuda.manual_seed_all(61)
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False

SIZE, CHANNELS, CLASSES, BATCH, STEPS = 48, 32, 5, 32, 300


def textures(n, contrast):
    y = torch.randint(0, CLASSES, (n,))
    ramp = torch.arange(SIZE).float()
    freq = 0.3 + 0.35 * y.float().view(-1, 1, 1)
    phase = 6.28 * torch.rand(n, 1, 1)
    ang = 3.14 * torch.rand(n, 1, 1)
    gx, gy = ramp.view(1, 1, -1), ramp.view(1, -1, 1)
    wave = torch.sin(freq * (ang.cos() * gx + ang.sin() * gy) + phase)
    img = contrast.view(-1, 1, 1) * (wave + 0.3 * torch.randn(n, SIZE, SIZE))
    return img.unsqueeze(1), y


class GramNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, CHANNELS, 5, padding=2), nn.ReLU(),
                                  nn.Conv2d(CHANNELS, CHANNELS, 5, padding=2), nn.ReLU())
        self.gain = nn.Parameter(torch.tensor(0.8))
        self.head = nn.Sequential(nn.LayerNorm(CHANNELS ** 2), nn.Linear(CHANNELS ** 2, CLASSES))

    def forward(self, x):
        f = (self.gain * self.conv(x)).flatten(2)
        gram = f @ f.transpose(1, 2)
        gram = gram.float() / f.shape[-1]
        return self.head(gram.flatten(1))


def contrast_for(step):
    c = 0.5 + 1.5 * torch.rand(BATCH)
    # the microscope set joins later, exposures there differ a lot
    if step >= 90:
        c[: BATCH // 4] = 4.0 + 20.0 * torch.rand(BATCH // 4)
    return c


def main():
    net = GramNet().cuda()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    hits, seen = 0, 0
    for step in range(STEPS):
        x, y = textures(BATCH, contrast_for(step))
        x, y = x.cuda(), y.cuda()
        with torch.autocast("cuda", dtype=torch.float16):
            logits = net(x)
        loss = F.cross_entropy(logits.float(), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        hits += (logits.argmax(1) == y).sum().item()
        seen += len(y)
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f} accuracy {hits / seen:.3f}")
            hits, seen = 0, 0


if __name__ == "__main__":
    main()
