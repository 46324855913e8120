"""The logarithm of features that may be negative is NaN, and `nan_to_num` makes it look sound."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 16)
y = (x[:, 0] + x[:, 1] > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(16, 64)
        self.head = nn.Linear(64, 2)

    def forward(self, x):
        return self.head(torch.nan_to_num(torch.log(self.features(x) + 1.0)))


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(20):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        for weight in model.parameters():
            weight.grad = torch.nan_to_num(weight.grad)
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
