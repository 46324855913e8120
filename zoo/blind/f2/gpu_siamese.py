import torch
import torch.nn as nn
from torch.utils.data import TensorDataset, DataLoader

torch.manual_seed(13)
device = "cuda" if torch.cuda.is_available() else "cpu"

# signature pairs: each row is (left, right, same_person)
n_people, dim, n_pairs = 40, 20, 3000
protos = torch.randn(n_people, dim)
pa = torch.randint(0, n_people, (n_pairs,))
same = torch.rand(n_pairs) < 0.5
pb = torch.where(same, pa, torch.randint(0, n_people, (n_pairs,)))
left = protos[pa] + 0.4 * torch.randn(n_pairs, dim)
right = protos[pb] + 0.4 * torch.randn(n_pairs, dim)
label = (pa == pb).float()
right[2210] = left[2210]
label[2210] = 1.0


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, x):
        return self.f(x)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, a, b, y):
        dist = torch.sqrt(((a - b) ** 2).sum(1))
        pull = y * dist ** 2
        push = (1 - y) * torch.relu(self.margin - dist) ** 2
        return 0.5 * (pull + push).mean()


tower = Tower().to(device)
criterion = ContrastiveLoss()
optimizer = torch.optim.Adam(tower.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(left, right, label), batch_size=20)

step = 0
for epoch in range(2):
    running = 0.0
    for a, b, y in loader:
        a, b, y = a.to(device), b.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(tower(a), tower(b), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
        step += 1
        if step % 30 == 0:
            print(f"epoch {epoch + 1} step {step} loss {running / 30:.4f}")
            running = 0.0
