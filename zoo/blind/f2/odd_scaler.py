import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(50)
x = torch.randn(2000, 20)
y = (x[:, :4].sum(1) > 0).long() + (x[:, 4] > 1).long()
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 26, growth_interval=15)



@torch.no_grad()
def accuracy():
    model.eval()
    correct = 0
    for k in range(1600, 2000, 100):
        with torch.autocast("cpu", dtype=torch.float16):
            pred = model(x[k:k + 100]).argmax(1)
        correct += (pred == y[k:k + 100]).sum().item()
    model.train()
    return correct / 400


for step in range(220):
    i = torch.randint(0, 1600, (48,))
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(x[i])
        loss = F.cross_entropy(out.float(), y[i])
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    scaler.step(opt)
    scaler.update()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f} norm {norm.item():.3f} scale {scaler.get_scale():.3g}")
print(f"test accuracy {accuracy():.3f}")
