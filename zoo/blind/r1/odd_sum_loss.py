import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
# classic VAE-example style: everything summed over the batch, loss in the thousands
codes = (torch.rand(40, 36) < 0.3).float()
data = codes[torch.randint(0, 40, (1500,))]
data = (data + (torch.rand_like(data) < 0.03).float()) % 2


class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Linear(36, 64)
        self.c = nn.Linear(64, 10)
        self.d = nn.Linear(10, 64)
        self.o = nn.Linear(64, 36)

    def forward(self, x):
        return self.o(F.relu(self.d(torch.tanh(self.c(F.relu(self.e(x)))))))


net = AE()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(12):
    total = 0.0
    for xb in data[torch.randperm(len(data))].split(100):
        opt.zero_grad()
        loss = F.binary_cross_entropy_with_logits(net(xb), xb, reduction="sum")
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"epoch {epoch}: summed loss {total / 15:.1f} per batch, {total / len(data):.2f} per image")
