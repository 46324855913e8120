import torch
from torch import nn

torch.manual_seed(1)
x = torch.linspace(-3, 3, 200).unsqueeze(1)
y = torch.sin(2 * x) * torch.exp(-0.1 * x ** 2) + 0.03 * torch.randn_like(x)
net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
opt = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=10, history_size=20, line_search_fn="strong_wolfe")
crit = nn.MSELoss()

for outer in range(25):
    def closure():
        opt.zero_grad()
        loss = crit(net(x), y)
        loss.backward()
        return loss
    value = opt.step(closure)
    if outer % 5 == 0:
        print("outer", outer, "mse", value.item())
with torch.no_grad():
    print("final mse %.5f" % crit(net(x), y))
