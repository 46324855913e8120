import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
K = 10
means = torch.randn(K, 20) * 1.6


def blob(n):
    y = torch.randint(0, K, (n,))
    return TensorDataset(means[y] + torch.randn(n, 20), y)


train_dl = DataLoader(blob(1500), 50, shuffle=True)
val_dl = DataLoader(blob(400), 100)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, K))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
train_loss = nn.CrossEntropyLoss(label_smoothing=0.3)
plain = nn.CrossEntropyLoss()

for epoch in range(8):
    model.train()
    acc_loss = 0.0
    for x, y in train_dl:
        opt.zero_grad()
        loss = train_loss(model(x), y)
        loss.backward()
        opt.step()
        acc_loss += loss.item()
    model.eval()
    v, c = 0.0, 0
    with torch.no_grad():
        for x, y in val_dl:
            o = model(x)
            v += plain(o, y).item() * len(y)
            c += (o.argmax(1) == y).sum().item()
    print(f"epoch {epoch}: smoothed train loss {acc_loss / len(train_dl):.3f}, plain val loss {v / 400:.3f}, val accuracy {c / 400:.3f}")
