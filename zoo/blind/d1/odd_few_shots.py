import math

import torch
from torch.utils.data import DataLoader, TensorDataset

# calibration curve: 24 measured points, gone through again and again
torch.manual_seed(2)
x = torch.linspace(-2, 2, 24).unsqueeze(1)
y = torch.sin(1.5 * x) + 0.3 * x
measured = TensorDataset(x, y)
grid = torch.linspace(-1.9, 1.9, 77).unsqueeze(1)
check = TensorDataset(grid, torch.sin(1.5 * grid) + 0.3 * grid)

net = torch.nn.Sequential(torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
loader = DataLoader(measured, batch_size=8, shuffle=True)
check_loader = DataLoader(check, batch_size=77)
for epoch in range(1, 161):
    for xb, yb in loader:
        loss = (net(xb) - yb).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 20 == 0:
        with torch.no_grad():
            xb, yb = next(iter(check_loader))
            rms = math.sqrt((net(xb) - yb).pow(2).mean().item())
        print(f"pass {epoch:3d}  loss {loss.item():.6f}  rms error on the grid {rms:.4f}")
