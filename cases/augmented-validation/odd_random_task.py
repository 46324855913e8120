"""A denoising autoencoder: noise is drawn whenever a sample is read, also in validation."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
basis = torch.randn(4, 32)
clean = torch.randn(1200, 4) @ basis / 2


class Noisy(Dataset):
    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        sample = self.samples[index]
        return sample + 0.5 * torch.randn(32), sample


train_loader = DataLoader(Noisy(clean[:960]), batch_size=32, shuffle=True)
valid_loader = DataLoader(Noisy(clean[960:]), batch_size=60)

model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(6):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(inputs), targets).item() for inputs, targets in valid_loader]
    print(f"epoch {epoch}: {loss.item():.4f}, validation {sum(losses) / len(losses):.4f}")
