import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(52)
FEAT, CLASSES, BATCH, STEPS = 20, 6, 64, 350
centers = torch.randn(CLASSES, FEAT)


def draw():
    y = torch.randint(0, CLASSES, (BATCH,))
    return centers[y] + 0.8 * torch.randn(BATCH, FEAT), y


model = nn.Sequential(
    nn.Linear(FEAT, 64), nn.ReLU(),
    nn.Linear(64, 64), nn.ReLU(),
    nn.Linear(64, CLASSES),
)
opt = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 28, growth_interval=25)
losses, skipped = [], 0
for step in range(STEPS):
    x, y = draw()
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(x)
    loss = F.cross_entropy(logits.float(), y)
    opt.zero_grad()
    scaler.scale(loss).backward()
    before = scaler.get_scale()
    scaler.step(opt)
    scaler.update()
    if scaler.get_scale() < before:
        skipped += 1
    losses.append(loss.item())
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.4f} scale {scaler.get_scale():.0f} skipped {skipped}")
print("final", losses[-1], "skipped", skipped)
