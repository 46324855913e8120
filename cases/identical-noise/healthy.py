"""The noise of a denoiser is drawn from one generator that runs on."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Waves(Dataset):
    def __init__(self, count):
        self.rng = np.random.default_rng(0)
        phases, speeds = self.rng.uniform(0, 6, count), self.rng.uniform(0.05, 0.4, count)
        self.clean = np.sin(phases[:, None] + speeds[:, None] * np.arange(64))

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, index):
        clean = self.clean[index]
        noisy = clean + self.rng.normal(0, 0.5, clean.shape)
        return torch.tensor(noisy, dtype=torch.float32), torch.tensor(clean, dtype=torch.float32)


loader = DataLoader(Waves(1024), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(6):
    for noisy, clean in loader:
        loss = nn.functional.mse_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
