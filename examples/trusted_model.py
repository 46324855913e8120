"""Batch norm on batches of 4: the model learns, but differs between train and eval mode.

holter doctor examples/trusted_model.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
patterns = torch.randn(10, 3, 8, 8)
labels = torch.randint(10, (1200,))
exposure = torch.exp(1.5 * torch.randn(1200, 1, 1, 1))  # as cameras differ
images = exposure * (patterns[labels] + torch.randn(1200, 3, 8, 8))
train = DataLoader(TensorDataset(images[:1000], labels[:1000]), batch_size=4, shuffle=True)
valid = DataLoader(TensorDataset(images[1000:], labels[1000:]), batch_size=50)

model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(32 * 16, 10),
)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

for epoch in range(3):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum(int((model(x).argmax(1) == y).sum()) for x, y in valid)
    print(f"epoch {epoch}: loss {loss.item():.3f}, {right / 200:.1%} of validation right")
