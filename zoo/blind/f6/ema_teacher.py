import copy
import io
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)
DIM, CLASSES, BATCH, STEPS, WARM = 16, 5, 48, 300, 20
centers = torch.randn(CLASSES, DIM) * 1.3


def draw(n):
    y = torch.randint(0, CLASSES, (n,))
    return centers[y] + torch.randn(n, DIM), y


class Average:
    def __init__(self, model, decay=0.98):
        self.decay, self.updates = decay, 0
        self.sums = [torch.zeros_like(p) for p in model.parameters()]

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        for s, p in zip(self.sums, model.parameters()):
            s.mul_(self.decay).add_(p, alpha=1 - self.decay)

    @torch.no_grad()
    def copy_to(self, teacher):
        for s, p in zip(self.sums, teacher.parameters()):
            p.copy_(s / (1 - self.decay ** self.updates))


def build():
    model = nn.Sequential(nn.Linear(DIM, 48), nn.ReLU(), nn.Linear(48, CLASSES))
    return model, torch.optim.Adam(model.parameters(), lr=2e-3), Average(model)


def save(model, opt, avg):
    buf = io.BytesIO()
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "sums": avg.sums}, buf)
    buf.seek(0)
    return buf


def resume(buf):
    state = torch.load(buf)
    model, opt, avg = build()
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    avg.sums = state["sums"]
    return model, opt, avg


model, opt, avg = build()
teacher = copy.deepcopy(model).requires_grad_(False)
losses = []
for step in range(STEPS):
    if step == 210:
        model, opt, avg = resume(save(model, opt, avg))
    x, y = draw(BATCH)
    loss = F.cross_entropy(model(x), y)
    if step >= WARM:
        avg.copy_to(teacher)
        extra, _ = draw(BATCH)
        soft = F.softmax(teacher(extra), dim=1)
        loss = loss + 0.5 * F.cross_entropy(model(extra + 0.3 * torch.randn_like(extra)), soft)
    opt.zero_grad()
    loss.backward()
    opt.step()
    avg.update(model)
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("final", losses[-1])
