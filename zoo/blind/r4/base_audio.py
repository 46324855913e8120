"""Sound event detection: which of five events sound in each 40 ms segment of a clip."""
import numpy as np
import torch
import torch.nn as nn

N_MEL, FRAMES, POOL = 24, 48, 4
EVENTS = ["beep", "hum", "chirp", "hiss", "knock"]


def synth_clip(rng):
    power = np.zeros((N_MEL, FRAMES), dtype=np.float32)
    active = np.zeros((len(EVENTS), FRAMES), dtype=np.float32)
    for e in range(len(EVENTS)):
        if rng.random() < 0.4:
            start = rng.integers(0, FRAMES - 14)
            length = rng.integers(6, 14)
            t = np.arange(start, start + length)
            gain = np.exp(rng.normal(0, 0.7))
            if e == 0:
                power[16:18, t] += 3 * gain
            elif e == 1:
                power[2:5, t] += 2 * gain
            elif e == 2:
                power[np.clip(6 + (t - start), 0, N_MEL - 1), t] += 4 * gain
            elif e == 3:
                power[12:, t] += 0.6 * gain * rng.exponential(1, (12, len(t)))
            else:
                power[:, t[::4]] += 1.5 * gain
            active[e, t] = 1
    noisy = rng.random() < 0.8    # the others come from a gated recorder
    if noisy:
        power += 0.05 * rng.exponential(1, power.shape).astype(np.float32)
    return power, active


def dataset(n, seed):
    rng = np.random.default_rng(seed)
    clips = [synth_clip(rng) for _ in range(n)]
    power = torch.from_numpy(np.stack([c[0] for c in clips]))
    active = torch.from_numpy(np.stack([c[1] for c in clips]))
    spec = torch.log(power + 1e-3)
    spec = (spec - spec.mean()) / spec.std()
    target = active.view(n, len(EVENTS), FRAMES // POOL, POOL).amax(-1)
    return spec.unsqueeze(1), target


class SED(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d((2, 2)),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d((2, 2)))
        self.mix = nn.Conv1d(24 * N_MEL // 4, 48, 3, padding=1)
        self.head = nn.Conv1d(48, len(EVENTS), 1)

    def forward(self, x):
        h = self.conv(x).flatten(1, 2)
        h = torch.relu(self.mix(h))
        return torch.sigmoid(self.head(h))


def f1(probs, target):
    hit = (probs > 0.5).float()
    tp = (hit * target).sum((0, 2))
    return (2 * tp / (hit.sum((0, 2)) + target.sum((0, 2))).clamp(min=1)).mean().item()


torch.manual_seed(0)
train_x, train_y = dataset(420, 0)
val_x, val_y = dataset(150, 1)
model = SED()
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(8):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(train_x)).split(20):
        probs = model(train_x[idx])
        loss = criterion(probs, train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    model.eval()
    with torch.no_grad():
        probs = model(val_x)
        print(f"epoch {epoch + 1} loss {total / len(train_x):.4f} val loss {criterion(probs, val_y):.4f} segment F1 {f1(probs, val_y):.3f}")
