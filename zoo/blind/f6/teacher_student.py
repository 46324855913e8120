import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(27)
FEAT, CLASSES, BATCH, STEPS, TEMP = 24, 12, 64, 480, 3.0


def mlp(width):
    return nn.Sequential(nn.Linear(FEAT, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES))


def make_teacher():
    net = mlp(96)
    for p in net.parameters():
        p.data.mul_(2.0)
        p.requires_grad_(False)
    return net.eval()


class ScaledStep:
    """Keeps small half precision gradients alive by scaling the loss."""

    def __init__(self, params, opt, start=2.0 ** 12, every=30):
        self.params, self.opt = list(params), opt
        self.factor, self.every, self.count = start, every, 0

    def __call__(self, loss):
        self.opt.zero_grad()
        (loss * self.factor).backward()
        for p in self.params:
            p.grad.div_(self.factor)
        self.opt.step()
        self.count += 1
        if self.count % self.every == 0:
            self.factor *= 2.0


teacher, student = make_teacher(), mlp(48)
opt = torch.optim.SGD(student.parameters(), lr=0.02, momentum=0.9)
advance = ScaledStep(student.parameters(), opt)
losses = []
for step in range(STEPS):
    x = torch.randn(BATCH, FEAT)
    with torch.no_grad():
        soft = F.softmax(teacher(x) / TEMP, dim=1)
    with torch.autocast("cpu", dtype=torch.float16):
        logits = student(x)
    log_p = F.log_softmax(logits.float() / TEMP, dim=1)
    loss = F.kl_div(log_p, soft, reduction="batchmean") * TEMP ** 2
    advance(loss)
    losses.append(loss.item())
    if step % 30 == 0:
        print(f"step {step} loss {loss.item():.4f} factor {advance.factor:.0f}")
print("final", losses[-1])
