"""Sanity check we run before every project: can the network memorise eight samples?"""
import torch
import torch.nn as nn

torch.manual_seed(5)
x = torch.randn(8, 3, 12, 12)
y = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])
net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 25, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for step in range(150):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 0:
        print(step, f"{loss.item():.6f}")
assert loss.item() < 0.05
print("memorised, loss", loss.item())
