"""The generator of the noise is copied into every worker, with its state."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)
patterns = torch.randn(4, 1, 8, 8)
labels = torch.randint(4, (1200,))
images = patterns[labels] + torch.randn(1200, 1, 8, 8)


class NoisyImages(Dataset):
    """Training images, with a little noise added each time."""

    def __init__(self):
        self.generator = np.random.default_rng(0)

    def __len__(self):
        return 960

    def __getitem__(self, index):
        noise = torch.tensor(self.generator.normal(0, 0.3, (1, 8, 8)), dtype=torch.float32)
        return images[index] + noise, labels[index]


train_loader = DataLoader(NoisyImages(), batch_size=32, shuffle=True, num_workers=2)
valid_loader = DataLoader(TensorDataset(images[960:], labels[960:]), batch_size=60)

model = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 4)
)
criterion = nn.CrossEntropyLoss()
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
