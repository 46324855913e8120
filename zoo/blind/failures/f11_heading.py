# learn the mounting rotation of a sensor: predicted direction vs true direction, angular error in radians
import torch
import torch.nn.functional as F

torch.manual_seed(0)
Q, _ = torch.linalg.qr(torch.randn(3, 3))
obs = F.normalize(torch.randn(2000, 3), dim=1)
true_dir = obs @ Q.t()

R = torch.nn.Parameter(torch.eye(3) + 0.1 * torch.randn(3, 3))
opt = torch.optim.Adam([R], lr=0.03)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.985)

for step in range(500):
    idx = torch.randint(0, len(obs), (64,))
    pred = F.normalize(obs[idx] @ R.t(), dim=1)
    cos = (pred * true_dir[idx]).sum(1)
    angle = torch.acos(cos)
    loss = angle.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 20 == 0:
        print(f"{step} mean angle {loss.item():.5f} rad")
