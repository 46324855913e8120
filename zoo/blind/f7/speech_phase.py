"""Speech enhancement: complex mask on a short STFT with magnitude and phase terms."""
import argparse
import torch
import torch.nn as nn

WIN, HOP = 64, 32


def stft_frames(x):
    f = x.unfold(-1, WIN, HOP) * torch.hann_window(WIN)
    s = torch.fft.rfft(f)[..., 1:-1]
    return torch.view_as_real(s)


class Enhancer(nn.Module):
    def __init__(self, bins=WIN // 2 - 1, hidden=96):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * bins, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2 * bins))
        self.bins = bins

    def forward(self, spec):
        b, t = spec.shape[:2]
        m = self.net(spec.reshape(b, t, -1)).view(b, t, self.bins, 2)
        mr, mi = 1 + m[..., 0], m[..., 1]
        re = spec[..., 0] * mr - spec[..., 1] * mi
        im = spec[..., 0] * mi + spec[..., 1] * mr
        return torch.stack([re, im], -1)


def phase_loss(est, ref):
    size = torch.hypot(est[..., 0], est[..., 1]) * torch.hypot(ref[..., 0], ref[..., 1])
    cosine = (est * ref).sum(-1) / size
    w = ref.pow(2).sum(-1)
    return (w * (1 - cosine)).sum() / w.sum().clamp(min=1e-6)


class Calls:
    def __init__(self, seed, length=512):
        self.g, self.length = torch.Generator().manual_seed(seed), length

    def batch(self, n):
        t = torch.arange(self.length) / 100.0
        f = 3 + 20 * torch.rand(n, 3, 1, generator=self.g)
        ph = 6.28 * torch.rand(n, 3, 1, generator=self.g)
        clean = torch.sin(2 * torch.pi * f * t + ph).mean(1)
        noisy = clean + 0.25 * torch.randn(n, self.length, generator=self.g)
        lost = torch.rand(n, generator=self.g) < 0.0004
        for i in lost.nonzero().flatten().tolist():
            a = int(torch.randint(0, self.length - 160, (1,), generator=self.g))
            noisy[i, a:a + 160] = 0.0
        return noisy, clean


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=350)
    ap.add_argument("--batch", type=int, default=16)
    a = ap.parse_args()
    torch.manual_seed(0)
    calls, net = Calls(6), Enhancer()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(a.steps):
        noisy, clean = calls.batch(a.batch)
        est, ref = net(stft_frames(noisy)), stft_frames(clean)
        spec = (est - ref).abs().mean()
        loss = spec + 0.5 * phase_loss(est, ref)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} spec {spec.item():.4f}")


if __name__ == "__main__":
    main()
