"""The scaler of a table is fitted to the training rows and applied to those held out."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = 3.0 + 2.0 * torch.randn(1500, 8)
values = 0.5 * rows[:, :1] - rows[:, 1:2] + 0.2 * torch.randn(1500, 1)


class Scaler:
    def fit_transform(self, table):
        self.mean, self.std = table.mean(0), table.std(0)
        return self.transform(table)

    def transform(self, table):
        return (table - self.mean) / self.std


scaler = Scaler()
x_train, y_train = rows[:1000], values[:1000]
x_val, y_val = rows[1000:], values[1000:]
x_train = scaler.fit_transform(x_train)
x_val = scaler.transform(x_val)
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=40, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=250)

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    model.train()
    for inputs, targets in train_loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [nn.functional.mse_loss(model(a), b).item() for a, b in val_loader]
    print(f"epoch {epoch}: validation loss {sum(losses) / len(losses):.4f}")
