"""Small lab study: 150 samples, of which 20 are kept for validation."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(5)
x = torch.randn(150, 6)
w = torch.tensor([1.2, -0.8, 0.5, 0.0, 0.0, 0.9])
y = (x @ w + 0.3 * x[:, 0] * x[:, 1] + 0.3 * torch.randn(150) > 0).long()
train, val = random_split(TensorDataset(x, y), [130, 20], generator=torch.Generator().manual_seed(1))
train_loader = DataLoader(train, batch_size=10, shuffle=True)
val_loader = DataLoader(val, batch_size=20)

model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-3)
lossf = nn.CrossEntropyLoss()
for epoch in range(25):
    model.train()
    tot = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = lossf(model(xb), yb)
        loss.backward()
        optimizer.step()
        tot += loss.item() * len(yb)
    if epoch % 3 == 0 or epoch == 24:
        model.eval()
        with torch.no_grad():
            xb, yb = next(iter(val_loader))
            out = model(xb)
            print(f"epoch {epoch:2d} train {tot / len(train):.3f} val {lossf(out, yb).item():.3f} val acc {(out.argmax(1) == yb).float().mean():.2f}")
