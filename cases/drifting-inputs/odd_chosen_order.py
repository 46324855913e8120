"""A sampler of the script gives easy rows first, and hard ones later."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

torch.manual_seed(0)
centres = 1.2 * torch.randn(4, 16)
y = torch.randint(4, (1536,))
x = centres[y] + torch.randn(1536, 16)


class EasyFirst(Sampler):
    def __init__(self, difficulty):
        self.order, self.epoch = difficulty.argsort(), 0

    def __iter__(self):
        start = 64 * self.epoch
        self.epoch += 1
        part = self.order[start : start + 512]
        return iter(part[torch.randperm(512)].tolist())

    def __len__(self):
        return 512


x[:1024] *= torch.linspace(0.5, 2, 1024).unsqueeze(1)
train_set = TensorDataset(x[:1024], y[:1024])
train_loader = DataLoader(train_set, batch_size=32, sampler=EasyFirst(x[:1024].norm(dim=1)))
valid_loader = DataLoader(TensorDataset(x[1024:], y[1024:]), batch_size=256)

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(9):
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
