"""A plain recurrent network that multiplies its state by 1.6 at each of 30 time steps."""

import torch
from torch import nn

torch.manual_seed(0)
steps, features = 30, 4
labels = torch.randint(3, (1024,))
series = torch.randn(1024, steps, features)
series[:, :, 0] += 0.6 * (labels[:, None] - 1)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(features, 32, nonlinearity="relu", batch_first=True)
        self.head = nn.Linear(32, 3)
        nn.init.eye_(self.rnn.weight_hh_l0)
        self.rnn.weight_hh_l0.data.mul_(1.6)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


model = Classifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for _ in range(10):
    for batch in torch.randperm(1024).split(64):
        loss = nn.functional.cross_entropy(model(series[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
