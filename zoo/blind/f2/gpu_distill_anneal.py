"""Distil an ensemble's logits into a small student, the temperature is annealed."""
import argparse
import torch
import torch.nn as nn

ap = argparse.ArgumentParser()
ap.add_argument("--steps", type=int, default=300)
ap.add_argument("--t-start", type=float, default=4.0)
ap.add_argument("--t-end", type=float, default=0.01)
ap.add_argument("--lr", type=float, default=2e-3)
args = ap.parse_args()

torch.manual_seed(18)
device = "cuda" if torch.cuda.is_available() else "cpu"
teacher = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 8)).to(device)
for p in teacher.parameters():
    p.requires_grad_(False)
    p.mul_(2.5)
student = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 8)).to(device)
optimizer = torch.optim.Adam(student.parameters(), lr=args.lr)
scaler = torch.amp.GradScaler(device)
pool = torch.randn(2000, 16, device=device)


def kl(p, q):
    return (p * torch.log(p / q)).sum(1).mean()


for step in range(args.steps):
    frac = step / args.steps
    temp = args.t_start * (args.t_end / args.t_start) ** frac
    x = pool[torch.randint(0, len(pool), (48,), device=device)]
    with torch.autocast(device, dtype=torch.float16):
        with torch.no_grad():
            target = torch.softmax(teacher(x).float() / temp, dim=1)
        pred = torch.softmax(student(x).float(), dim=1)
        loss = kl(target, pred)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if step % 25 == 0:
        agree = (pred.argmax(1) == target.argmax(1)).float().mean().item()
        print(f"step {step} T {temp:.3f} kl {loss.item():.4f} agreement {agree:.2f}")
