import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(33)


def buildings(n=4096):
    x = torch.randn(n, 8)
    y = torch.sin(x[:, 0] * 2) + x[:, 1] * x[:, 2] * 0.5 + 0.3 * x[:, 3] + 0.05 * torch.randn(n)
    return x, y.unsqueeze(1)


class EnergyModel(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.inp = nn.Linear(8, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.tanh(self.inp(x))
        h = h + torch.tanh(self.mid(h))
        return self.out(h)


def micro_batches(loader):
    while True:
        for batch in loader:
            yield batch


def main():
    x, y = buildings()
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True, drop_last=True)
    stream = micro_batches(loader)
    model = EnergyModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.04)
    plan = [(100, 1), (100, 2), (80, 4), (80, 8), (60, 16)]
    update = 0
    for updates, accumulate in plan:
        for _ in range(updates):
            optimizer.zero_grad()
            shown = 0.0
            for _ in range(accumulate):
                features, target = next(stream)
                loss = nn.functional.mse_loss(model(features), target)
                loss.backward()
                shown += loss.item() / accumulate
            optimizer.step()
            if update % 20 == 0:
                print(f"update {update} accumulate {accumulate} loss {shown:.4f}")
            update += 1


if __name__ == "__main__":
    main()
