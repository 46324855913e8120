import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class BatchStd(nn.Module):
    """batch normalisation, own implementation"""

    def __init__(self, n, momentum=0.1):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(n))
        self.beta = nn.Parameter(torch.zeros(n))
        self.momentum = momentum
        self.register_buffer("rm", torch.zeros(n))
        self.register_buffer("rv", torch.ones(n))

    def forward(self, x):
        if self.training:
            mean, var = x.mean(0), x.var(0)
            self.rm.lerp_(mean.detach(), self.momentum)
            self.rv.lerp_(var.detach(), self.momentum)
        else:
            mean, var = self.rm, self.rv
        return self.gamma * (x - mean) / torch.sqrt(var + 1e-5) + self.beta


def main():
    torch.manual_seed(1)
    n_train = 1985
    x = torch.randn(n_train + 300, 10)
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()
    train = DataLoader(TensorDataset(x[:n_train], y[:n_train]), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 48), BatchStd(48), nn.ReLU(), nn.Linear(48, 48), BatchStd(48), nn.ReLU(), nn.Linear(48, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(4):
        model.train()
        for i, (xb, yb) in enumerate(train):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            if i % 20 == 0:
                print(f"epoch {epoch} [{i}/{len(train)}] loss {loss.item():.4f}")
        model.eval()
        with torch.no_grad():
            acc = (model(x[n_train:]).argmax(1) == y[n_train:]).float().mean()
        print(f"epoch {epoch} val acc {acc:.3f}")


main()
