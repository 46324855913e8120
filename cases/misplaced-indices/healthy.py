"""A graph network whose nodes add up the features of their neighbours."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
NODES = 12
src = torch.cat([torch.arange(NODES), torch.arange(NODES)])
dst = (src + torch.tensor([1, -1]).repeat_interleave(NODES)) % NODES  # a ring
features = torch.randn(1200, NODES, 4)
received = torch.zeros_like(features).index_add(1, dst, features[:, src])
label = (received[..., 0] + 0.5 * received[..., 1] + 0.5 * features[..., 2] > 0).float()
train = TensorDataset(features[:1000], label[:1000])
held_out = DataLoader(TensorDataset(features[1000:], label[1000:]), batch_size=50)
loader = DataLoader(train, batch_size=25, shuffle=True)


class Messages(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 24)
        self.own, self.others = nn.Linear(24, 24), nn.Linear(24, 24)
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        h = self.embed(x)
        received = torch.zeros_like(h).index_add(1, dst, h[:, src])
        return self.head((self.own(h) + self.others(received)).relu()).squeeze(-1)


model = Messages()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    total = 0.0
    for inputs, labels in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        right = [((model(x) > 0).float() == y).float().mean().item() for x, y in held_out]
    print(f"epoch {epoch}: loss {total / len(loader):.4f}, accuracy {sum(right) / len(right):.3f}")
