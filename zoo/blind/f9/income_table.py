import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(11)


def load_table(rows=8000):
    age = torch.randint(18, 90, (rows,)).float()
    income = torch.distributions.Gamma(2.0, 1.0 / 1500.0).sample((rows,)).round()
    hours = torch.randint(0, 60, (rows,)).float()
    debts = torch.poisson(torch.full((rows,), 2.0))
    table = torch.stack([age, income, hours, debts], dim=1)
    table[5321, 1] = -1.0
    score = 0.02 * (age - 50) - 0.6 * (torch.log(income + 50) - 7.5) + 0.3 * (debts - 2)
    label = (score + 0.5 * torch.randn(rows) > 0).float()
    return table, label


class CreditNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(4, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, raw):
        age = (raw[:, 0] - 50.0) / 20.0
        income = torch.log1p(raw[:, 1]) - 7.5
        hours = raw[:, 2] / 30.0 - 1.0
        debts = raw[:, 3] / 3.0
        features = torch.stack([age, income, hours, debts], dim=1)
        return self.body(features).squeeze(1)


def main():
    table, label = load_table()
    loader = DataLoader(TensorDataset(table, label), batch_size=32, shuffle=True,
                        generator=torch.Generator().manual_seed(3))
    model = CreditNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    step = 0
    for epoch in range(3):
        for raw, target in loader:
            optimizer.zero_grad()
            loss = criterion(model(raw), target)
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            step += 1


if __name__ == "__main__":
    main()
