"""A branch that is faded out in float16 before its layer norm: its gradients overflow."""

import torch
from torch import nn
from torch.nn.functional import layer_norm

torch.manual_seed(0)
x = torch.randn(512, 16)
y = (x[:, 0] + x[:, 1] > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(16, 64)
        self.head = nn.Linear(64, 2)
        self.fade = 1.0

    def forward(self, x):
        hidden = self.features(x) * self.fade
        return self.head(torch.relu(layer_norm(hidden, (64,), eps=1e-14)))


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18)

for epoch in range(24):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = criterion(model(x[index]), y[index])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    model.fade *= 0.6 if epoch > 3 else 1.0
    print(f"epoch {epoch}: loss {loss.item():.4f} scale {scaler.get_scale():.4g}")
