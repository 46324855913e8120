import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(33)
FACE, BATCH, STEPS = 30, 64, 600
gen = torch.Generator().manual_seed(6)
camera = torch.randn(3, FACE, generator=gen)


def faces():
    look = F.normalize(torch.randn(BATCH, 3, generator=gen), dim=1)
    image = torch.tanh(look @ camera) + 0.02 * torch.randn(BATCH, FACE, generator=gen)
    return image, look


class Gaze(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(FACE, 64), nn.GELU(),
            nn.Linear(64, 64), nn.GELU(),
            nn.Linear(64, 3),
        )

    def forward(self, image):
        return F.normalize(self.net(image), dim=1)


def angular_error(pred, look):
    cosine = (pred * look).sum(1).clamp(-1.0, 1.0)
    return torch.acos(cosine).mean()


model = Gaze()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS)
losses = []
for step in range(STEPS):
    image, look = faces()
    loss = angular_error(model(image), look)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    losses.append(loss.item())
    if step % 25 == 0:
        print(f"step {step} degrees {loss.item() * 57.2958:.3f}")
print("final", losses[-1])
