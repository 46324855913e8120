"""Visits of the same patients are in training and in validation."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(0)
PATIENTS, VISITS = 120, 12
ill = torch.randint(2, (PATIENTS,))
habit = 2 * torch.randn(PATIENTS, 16)


class Clinic(Dataset):
    """What was measured at each visit; whether a patient is ill shows in the first value."""

    def __init__(self) -> None:
        self.patient = torch.arange(PATIENTS).repeat_interleave(VISITS)
        self.y = ill[self.patient]
        self.x = habit[self.patient] + 0.3 * torch.randn(len(self.y), 16)
        self.x[:, 0] += 0.8 * self.y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.x[index], self.y[index]


train_set, valid_set = random_split(Clinic(), [0.8, 0.2])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=128)

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(12):
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
