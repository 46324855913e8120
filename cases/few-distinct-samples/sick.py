"""The index is taken modulo the batch size instead of the number of rows."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)
centres = 1.2 * torch.randn(4, 16)
y = torch.randint(4, (1536,))
x = centres[y] + torch.randn(1536, 16)


class Rows(Dataset):
    def __init__(self, rows, labels):
        self.rows, self.labels = rows, labels

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        index %= 32
        return self.rows[index], self.labels[index]


train_loader = DataLoader(Rows(x[:1024], y[:1024]), batch_size=32, shuffle=True)
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
