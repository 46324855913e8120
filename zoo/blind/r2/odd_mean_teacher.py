import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(41)


class MeanTeacher:
    """Few labels, many unlabelled points; the teacher is an average of the student and is never in an optimizer."""

    def __init__(self, net, decay=0.98):
        self.student = net
        self.teacher = copy.deepcopy(net)
        for p in self.teacher.parameters():
            p.requires_grad = False
        self.decay = decay

    @torch.no_grad()
    def update(self, step):
        d = min(self.decay, (step + 1) / (step + 10))
        for pt, ps in zip(self.teacher.parameters(), self.student.parameters()):
            pt.lerp_(ps, 1 - d)


def moons(n):
    k = torch.randint(0, 3, (n,))
    r = 1.0 + 0.9 * k + 0.12 * torch.randn(n)
    a = 6.283 * torch.rand(n)
    return torch.stack([r * a.cos(), r * a.sin()], 1), k


x_u, _ = moons(1500)
x_l, y_l = moons(60)
x_v, y_v = moons(600)
net = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
mt = MeanTeacher(net)
opt = torch.optim.Adam(mt.student.parameters(), lr=4e-3)
for step in range(400):
    xu = x_u[torch.randint(0, 1500, (64,))]
    w = 3.0 * min(1.0, step / 150)
    with torch.no_grad():
        soft = mt.teacher(xu + 0.05 * torch.randn_like(xu)).softmax(-1)
    cons = F.mse_loss(mt.student(xu + 0.05 * torch.randn_like(xu)).softmax(-1), soft)
    sup = F.cross_entropy(mt.student(x_l + 0.05 * torch.randn_like(x_l)), y_l)
    loss = sup + w * cons
    opt.zero_grad()
    loss.backward()
    opt.step()
    mt.update(step)
    if step % 80 == 79:
        with torch.no_grad():
            a = [(m(x_v).argmax(1) == y_v).float().mean().item() for m in (mt.student, mt.teacher)]
        print(f"step {step + 1} sup {sup.item():.4f} cons {cons.item():.5f} weight {w:.2f} student {a[0]:.3f} teacher {a[1]:.3f}")
