"""The same gain is held at 8, far from the end of float16."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 16)
y = (x[:, 0] + x[:, 1] > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(16, 64)
        self.norm = nn.LayerNorm(64)
        self.head = nn.Linear(64, 2)
        self.gain = 1.0

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.features(x * self.gain))))


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

for epoch in range(25):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = criterion(model(x[index]), y[index])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    model.gain = min(3.0 * model.gain, 8.0)
    print(f"epoch {epoch}: loss {loss.item():.4f}")
