"""The collate function stacks the rows of a batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 1.2 * torch.randn(4, 16)
y = torch.randint(4, (1536,))
x = centres[y] + torch.randn(1536, 16)


def collate(batch):
    rows = torch.stack([row for row, _ in batch])
    return rows, torch.stack([label for _, label in batch])


train_set = TensorDataset(x[:1024], y[:1024])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True, collate_fn=collate)
valid_loader = DataLoader(TensorDataset(x[1024:], y[1024:]), batch_size=256)

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(8):
    model.train()
    for inputs, labels in train_loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [nn.functional.cross_entropy(model(a), b).item() for a, b in valid_loader]
    print(f"epoch {epoch}: validation loss {sum(losses) / len(losses):.4f}")
