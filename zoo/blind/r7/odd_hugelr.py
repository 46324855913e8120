"""Matrix factorisation with plain SGD and a learning rate of 25: right here, as the mean loss makes gradients tiny."""
import torch
import torch.nn as nn

torch.manual_seed(8)
torch.set_num_threads(1)

USERS, ITEMS, RANK = 120, 90, 4
u_true, i_true = torch.randn(USERS, RANK), torch.randn(ITEMS, RANK)
ratings = u_true @ i_true.t() / RANK ** 0.5 + 0.05 * torch.randn(USERS, ITEMS)
pick = torch.rand(USERS, ITEMS)
train_mask, val_mask, test_mask = (pick < 0.6).float(), ((pick >= 0.6) & (pick < 0.8)).float(), (pick >= 0.8).float()


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.u = nn.Parameter(0.1 * torch.randn(USERS, RANK))
        self.v = nn.Parameter(0.1 * torch.randn(ITEMS, RANK))

    def forward(self):
        return self.u @ self.v.t()


def masked_mse(pred, mask):
    return ((pred - ratings).pow(2) * mask).sum() / mask.sum()


model = Factors()
# the gradient of one entry of u is divided by the number of all ratings (about 6500),
# so a step of usual size needs a learning rate in the tens
LR = 25.0
opt = torch.optim.SGD(model.parameters(), lr=LR)
STEPS = 600
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=STEPS, eta_min=LR / 20)

for step in range(STEPS):
    loss = masked_mse(model(), train_mask)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if (step + 1) % 60 == 0:
        with torch.no_grad():
            val = masked_mse(model(), val_mask).item()
        print(f"step {step + 1} lr {opt.param_groups[0]['lr']:.1f} train {loss.item():.5f} val {val:.5f}")

with torch.no_grad():
    test = masked_mse(model(), test_mask).item()
    grad_size = max(p.grad.abs().max().item() for p in model.parameters())
print(f"largest gradient entry {grad_size:.2e}")
print(f"test mse {test:.5f} (noise 0.00250, variance {ratings.var().item():.3f})")
