"""Two images in a batch: their pixels have few classes, and the images are shuffled."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
colours = torch.randn(8, 6)
kinds = torch.randint(8, (512,))
y = kinds[:, None, None].expand(512, 8, 8).clone()
x = colours[y].movedim(3, 1) + 0.5 * torch.randn(512, 6, 8, 8)
loader = DataLoader(TensorDataset(x, y), batch_size=2, shuffle=True)

model = nn.Sequential(nn.Conv2d(6, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 8, 1))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(3):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
