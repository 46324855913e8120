import torch
import torch.nn as nn


class ResMLP(nn.Module):
    def __init__(self, d=48, depth=4, classes=6):
        super().__init__()
        self.inp = nn.Linear(14, d)
        self.a = nn.ModuleList(nn.Linear(d, d) for _ in range(depth))
        self.b = nn.ModuleList(nn.Linear(d, d) for _ in range(depth))
        self.head = nn.Linear(d, classes)
        # every residual branch and the head start at zero: identity at the start, loss exactly ln C
        for layer in list(self.b) + [self.head]:
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        h = self.inp(x)
        for a, b in zip(self.a, self.b):
            h = h + b(torch.relu(a(h)))
        return self.head(h)


torch.manual_seed(27)
x = torch.randn(2000, 14)
y = (torch.tanh(x @ torch.randn(14, 10)) @ torch.randn(10, 6)).argmax(1)
m = ResMLP()
opt = torch.optim.Adam(m.parameters(), lr=2e-3)
for it in range(300):
    i = torch.randint(0, 1700, (64,))
    loss = nn.functional.cross_entropy(m(x[i]), y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 50 == 0 or it == 299:
        print(f"{it:3d} loss {loss.item():.4f} val acc {(m(x[1700:]).argmax(1) == y[1700:]).float().mean():.3f}")
