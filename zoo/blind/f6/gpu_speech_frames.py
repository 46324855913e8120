import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
device = "cuda"
BATCH, STEPS, LENGTH, CLASSES = 16, 300, 640, 6


def record_corpus(n):
    gen = torch.Generator().manual_seed(11)
    label = torch.randint(0, CLASSES, (n,), generator=gen)
    t = torch.arange(LENGTH) / 8000.0
    base = 200.0 + 350.0 * label[:, None]
    phase = torch.rand(n, 1, generator=gen) * 2 * math.pi
    wave = torch.sin(2 * math.pi * base * t + phase)
    wave = wave * (0.3 + torch.rand(n, 1, generator=gen))
    wave = wave + 0.4 * torch.randn(n, LENGTH, generator=gen)
    for utt in (3405, 3411, 4099):
        start = int(torch.randint(0, 200, (1,), generator=gen))
        wave[utt, start:start + 240] = 0.0
    return wave, label


class FrameTagger(nn.Module):
    def __init__(self, bands=20):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("bank", torch.rand(33, bands) * 0.2)
        self.gru = nn.GRU(bands, 32, batch_first=True)
        self.out = nn.Linear(32, CLASSES)

    def features(self, wave):
        frames = wave.unfold(1, 64, 32) * self.window
        power = torch.fft.rfft(frames).abs().pow(2)
        feat = torch.log(power @ self.bank)
        mean = feat.mean(dim=(1, 2), keepdim=True)
        return feat - mean

    def forward(self, wave):
        h, _ = self.gru(self.features(wave))
        return self.out(h.mean(1))


wave, label = record_corpus(BATCH * STEPS)
wave, label = wave.to(device), label.to(device)
model = FrameTagger().to(device)
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for step in range(STEPS):
    rows = slice(step * BATCH, (step + 1) * BATCH)
    loss = F.cross_entropy(model(wave[rows]), label[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("done", losses[-1])
