"""Cities are numbered once, in the order of the training set."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
CITIES = 12
effect = 2.0 * torch.randn(CITIES)


def bookings(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the city, other columns and the price."""
    city, x = torch.randint(CITIES, (count,)), torch.randn(count, 5)
    return city, x, effect[city] + x[:, 0] + 0.5 * x[:, 1] + 0.5 * torch.randn(count)


def numbered(cities: torch.Tensor, order: list[int]) -> torch.Tensor:
    """Return the place of each city in an order."""
    return torch.tensor([order.index(city) for city in cities.tolist()])


city, x, y = bookings(2000)
valid_city, valid_x, valid_y = bookings(500)
order = list(dict.fromkeys(city.tolist()))
train_set = TensorDataset(numbered(city, order), x, y)
valid_set = TensorDataset(numbered(valid_city, order), valid_x, valid_y)
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=250)


class Price(nn.Module):
    """An embedding of the city beside the other columns."""

    def __init__(self) -> None:
        super().__init__()
        self.city = nn.Embedding(CITIES, 4)
        self.head = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, city: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Return the price of each booking."""
        return self.head(torch.cat([self.city(city), x], dim=1)).squeeze(1)


model = Price()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(6):
    model.train()
    for city, x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(city, x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(city, x), y).item() for city, x, y in valid_loader]
    print(f"epoch {epoch}: {loss.item():.4f}, validation {sum(losses) / len(losses):.4f}")
