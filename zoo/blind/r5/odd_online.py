"""Online behaviour cloning: one expert transition at a time, no batch, no epochs, iterate averaging."""
import torch
from torch import nn

torch.manual_seed(9)
torch.set_num_threads(1)


def expert(s):
    d = s[..., 2:4] - s[..., 0:2]
    return torch.stack([torch.tanh(2 * d[..., 0] - s[..., 4]), torch.tanh(2 * d[..., 1] - s[..., 5])], -1)


policy = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 2))
mean = torch.optim.swa_utils.AveragedModel(policy, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.995))
opt = torch.optim.SGD(policy.parameters(), lr=0.06)
held = torch.randn(1000, 6) * 0.8
want = expert(held)
seen = 0.0
for k in range(1, 4001):
    s = torch.randn(6) * 0.8
    a = expert(s) + 0.3 * torch.randn(2)
    loss = (policy(s) - a).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    mean.update_parameters(policy)
    if k == 2000:
        opt.param_groups[0]["lr"] = 0.02
    seen += loss.item()
    if k % 500 == 0:
        with torch.no_grad():
            err = (mean(held) - want).square().mean().item()
        print(f"sample {k:5d}  last loss {loss.item():.4f}  mean of 500 {seen / 500:.4f}  error to the expert {err:.4f}")
        seen = 0.0
print(f"final error to the expert {err:.4f}  (action variance {want.var().item():.3f}, label noise 0.09)")
