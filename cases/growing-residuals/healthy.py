"""Both halves of each block have a norm before them."""

import torch
from torch import nn

torch.manual_seed(0)
WIDTH, DEPTH = 32, 14
centres = 1.5 * torch.randn(4, WIDTH)
y = torch.randint(4, (2048,))
x = centres[y] + 4 * torch.randn(2048, WIDTH)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mix = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH))
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))

    def forward(self, x):
        x = x + self.mix(self.norm1(x))
        return x + self.mlp(self.norm2(x))


model = nn.Sequential(*(Block() for _ in range(DEPTH)), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(5):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
