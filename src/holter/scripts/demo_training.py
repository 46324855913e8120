"""A classifier that learns nothing and raises no error."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(samples: int, seed: int) -> TensorDataset:
    """Return ten classes of noisy 8x8 images."""
    patterns = torch.randn(10, 64, generator=torch.Generator().manual_seed(0))
    noise = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (samples,), generator=noise)
    return TensorDataset(patterns[labels] + torch.randn(samples, 64, generator=noise), labels)


def make_model() -> nn.Module:
    """Return a network of two layers."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))


def main() -> None:
    """Train for five epochs."""
    torch.manual_seed(0)
    train = DataLoader(make_data(2_000, seed=1), batch_size=50, shuffle=True)
    valid = DataLoader(make_data(500, seed=2), batch_size=100)
    criterion = nn.CrossEntropyLoss()

    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model = make_model()  # "start again from fresh weights"

    for epoch in range(5):
        model.train()
        for inputs, labels in train:
            loss = criterion(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            held_out = sum(criterion(model(x), y).item() * len(y) for x, y in valid) / 500
        print(f"epoch {epoch}  loss {loss.item():.3f}  validation {held_out:.3f}")


if __name__ == "__main__":
    main()
