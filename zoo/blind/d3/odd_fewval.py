# Leaf disease, small lab study: 25 validation plants, batches of 16.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(4)
n = 425
y = torch.randint(0, 3, (n,))
centre = torch.randn(3, 20) * 0.75
x = centre[y] + torch.randn(n, 20)
train, val = random_split(TensorDataset(x, y), [400, 25], generator=torch.Generator().manual_seed(0))
train_dl, val_dl = DataLoader(train, batch_size=16, shuffle=True), DataLoader(val, batch_size=16)
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3))
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.02)
for epoch in range(14):
    model.train()
    s = hit = 0
    for xb, yb in train_dl:
        out = model(xb)
        loss = nn.functional.cross_entropy(out, yb)
        opt.zero_grad(); loss.backward(); opt.step()
        s += loss.item() * len(yb)
        hit += (out.argmax(1) == yb).sum().item()
    model.eval()
    vs = vh = 0
    with torch.no_grad():
        for xb, yb in val_dl:
            out = model(xb)
            vs += nn.functional.cross_entropy(out, yb, reduction="sum").item()
            vh += (out.argmax(1) == yb).sum().item()
    print(f"{epoch:02d} train {s / 400:.3f} {hit / 400:.3f}  val {vs / 25:.3f} {vh}/25")
