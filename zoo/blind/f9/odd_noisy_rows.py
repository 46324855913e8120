import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(201)


def table(n=4000):
    x = torch.randn(n, 7)
    y = x[:, 0] * 1.5 - x[:, 3] + 0.2 * torch.randn(n)
    bad = torch.randperm(n)[:25]
    x[bad[:15], 2] = float("nan")
    x[bad[15:], 5] = float("inf")
    return x, y


def main():
    x, y = table()
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(7, 48), nn.ReLU(), nn.Linear(48, 1))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    step, skipped = 0, 0
    for epoch in range(4):
        for features, target in loader:
            loss = nn.functional.mse_loss(model(features).squeeze(1), target)
            if not torch.isfinite(loss):
                skipped += 1
                continue
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f} skipped {skipped}")
            step += 1
    clean = torch.isfinite(x).all(1)
    with torch.no_grad():
        final = nn.functional.mse_loss(model(x[clean]).squeeze(1), y[clean])
    print("final", round(final.item(), 4))


if __name__ == "__main__":
    main()
