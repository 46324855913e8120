import torch
import torch.nn as nn

torch.manual_seed(12)
w = torch.randn(10, 1)
net = nn.Sequential(nn.Linear(10, 40), nn.Tanh(), nn.Linear(40, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.8)


def fetch(step):
    x = torch.randn(32, 10)
    y = torch.sin(x @ w) + 0.5 * x[:, :1]
    if step % 60 == 59:
        y[torch.randint(0, 32, (3,))] *= 1000
    return x, y


smooth = None
for step in range(420):
    x, y = fetch(step)
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    opt.step()
    v = min(loss.item(), 10.0)
    smooth = v if smooth is None else 0.97 * smooth + 0.03 * v
    if step % 30 == 0 or step % 60 == 59:
        print(f"step {step} loss {loss.item():.4f} smooth {smooth:.4f} grad norm {norm.item():.3f}")
