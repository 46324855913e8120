import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(111)


def frames(n, exposure):
    kind = torch.randint(0, 3, (n,))
    size = 12
    grid = torch.arange(size).float()
    img = torch.rand(n, 1, size, size) * 20 + 30
    img[kind == 1] += 15 * torch.sin(grid)[None, None, None, :] + 15
    img[kind == 2] += 15 * torch.sin(grid)[None, None, :, None] + 15
    return img * exposure, kind


class TextureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3, padding=1)
        self.mix = nn.Conv2d(12, 12, 1)
        self.norm = nn.LayerNorm(12)
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        h = self.conv(x / 10.0)
        h = self.mix(F.leaky_relu(h, 0.1))
        energy = (h * h).mean(dim=(2, 3))
        return self.head(self.norm(torch.log1p(energy)))


class ExposureRamp:
    def __init__(self, start, stop, steps):
        self.start, self.stop, self.steps = start, stop, steps

    def __call__(self, step):
        part = min(1.0, step / self.steps)
        return self.start * (self.stop / self.start) ** part


def main():
    model = TextureNet()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    ramp = ExposureRamp(1.0, 400.0, 500)
    for step in range(500):
        img, kind = frames(24, ramp(step))
        with torch.autocast("cpu", dtype=torch.float16):
            logits = model(img)
        loss = F.cross_entropy(logits.float(), kind)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            acc = (logits.argmax(1) == kind).float().mean().item()
            print(f"step {step} loss {loss.item():.4f} acc {acc:.2f}")


if __name__ == "__main__":
    main()
