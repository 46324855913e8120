import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(203)


def houses(n=3000):
    area = torch.rand(n) * 200 + 40
    rooms = (area / 30).round() + torch.randint(0, 2, (n,))
    age = torch.rand(n) * 80
    price = 3000.0 * area + 10000.0 * rooms - 900.0 * age + 15000.0 * torch.randn(n)
    return torch.stack([area / 100, rooms / 5, age / 40], 1), price


class Appraiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return 1000.0 * self.net(x).squeeze(1)


def main():
    x, price = houses()
    loader = DataLoader(TensorDataset(x, price), batch_size=30, shuffle=True)
    model = Appraiser()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 800)
    step = 0
    for epoch in range(8):
        for features, target in loader:
            error = model(features) - target
            loss = error.pow(2).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            if step % 50 == 0:
                print(f"step {step} squared error {loss.item():.3e} typical {error.abs().mean().item():.0f}")
            step += 1


if __name__ == "__main__":
    main()
