"""Texture classification from Gram matrices of patch features, half precision."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(61)
torch.set_num_threads(1)

SIZE, CHANNELS, CLASSES, BATCH, STEPS = 24, 16, 5, 8, 160


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
        # 5x5 patches as rows: linear layers are the half-precision kernels that this CPU has
        self.patch = nn.Sequential(nn.Linear(25, 32), nn.ReLU(), nn.Linear(32, CHANNELS), nn.ReLU())
        self.gain = nn.Parameter(torch.tensor(2.0))
        self.head = nn.Sequential(nn.LayerNorm(CHANNELS ** 2), nn.Linear(CHANNELS ** 2, CLASSES))

    def forward(self, x):
        rows = F.unfold(x, 5).transpose(1, 2)
        f = (self.gain * self.patch(rows)).transpose(1, 2)
        gram = f @ f.transpose(1, 2)
        gram = gram.float() / f.shape[-1]
        return self.head(gram.flatten(1))


def contrast_for(step):
    c = 0.5 + 1.5 * torch.rand(BATCH)
    # the microscope set joins later, exposures there differ a lot
    if step >= 90:
        c[: BATCH // 4] = 2.0 + 14.0 * torch.rand(BATCH // 4)
    return c


def main():
    net = GramNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    hits, seen = 0, 0
    for step in range(STEPS):
        x, y = textures(BATCH, contrast_for(step))
        with torch.autocast("cpu", dtype=torch.float16):
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
