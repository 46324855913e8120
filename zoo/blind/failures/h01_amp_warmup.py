import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1)
X = torch.randn(3000, 20, device=device)
Y = torch.bucketize(X[:, 0] * X[:, 1] + X[:, 2], torch.tensor([-1.0, 0.0, 1.0], device=device))

model = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 4)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
scaler = torch.amp.GradScaler(device, init_scale=2.0 ** 26)

for step in range(350):
    i = torch.randint(0, len(X), (64,), device=device)
    with torch.autocast(device, dtype=torch.float16):
        loss = F.cross_entropy(model(X[i]), Y[i])
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    gn = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    if step % 25 == 0 or step < 5:
        print(f"step {step} loss {loss.item():.4f} grad {gn.item():.3f} scale {scaler.get_scale():.0f}")
