"""Sequences have one length in the whole run, on a GPU whose memory is nearly full."""

import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda")
total = torch.cuda.get_device_properties(device).total_memory
torch.cuda.set_per_process_memory_fraction(2.1 * 2**30 / total)  # shared with other programs
centres = torch.randn(10, 64, device=device)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(64, 1024)
        self.blocks = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(8))
        self.head = nn.Linear(1024, 10)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = x + torch.relu(block(x)) / 8
        return self.head(x.mean(1))


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(336):
    length = 512
    labels = torch.randint(10, (32,), device=device)
    inputs = 0.1 * centres[labels][:, None] + torch.randn(32, length, 64, device=device)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: length {length}, loss {loss.item():.4f}")
