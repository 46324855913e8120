import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(6)
rng = np.random.default_rng(6)


def subject_data(n_subjects, per, noise, drift):
    xs, ys = [], []
    for _ in range(n_subjects):
        f = np.array([0.06, 0.10, 0.15, 0.21]) * rng.uniform(1 - drift, 1 + drift)
        y = rng.integers(0, 4, per)
        t = np.arange(50)
        x = np.sin(2 * np.pi * f[y][:, None] * t + rng.uniform(0, 6.28, (per, 1))) * rng.uniform(0.8, 1.3)
        xs.append(x + noise * rng.normal(size=x.shape)), ys.append(y)
    return torch.tensor(np.concatenate(xs)[:, None], dtype=torch.float32), torch.tensor(np.concatenate(ys))


train = subject_data(20, 50, 0.5, 0.05)
valid = {
    "same lab": subject_data(5, 50, 0.5, 0.05),
    "noisy room": subject_data(5, 50, 1.1, 0.05),
    "other sensor": subject_data(5, 50, 0.6, 0.20),
}
net = nn.Sequential(nn.Conv1d(1, 16, 15), nn.ReLU(), nn.Conv1d(16, 16, 9), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(16, 4))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
ce = nn.CrossEntropyLoss()
for epoch in range(8):
    net.train()
    tot = 0.0
    for b in torch.randperm(1000).split(50):
        loss = ce(net(train[0][b]), train[1][b])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() * len(b)
    net.eval()
    line = f"epoch {epoch} train {tot / 1000:.3f}"
    with torch.no_grad():
        for name, (x, y) in valid.items():
            o = net(x)
            line += f" | {name}: loss {ce(o, y).item():.3f} acc {(o.argmax(1) == y).float().mean():.3f}"
    print(line)
