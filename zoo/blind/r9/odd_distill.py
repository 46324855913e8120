"""Knowledge distillation: a wide teacher, then a narrow student on soft targets at temperature 4."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.set_num_threads(1)
torch.manual_seed(2)
X, y = load_digits(return_X_y=True)
Xtr, Xte, ytr, yte = train_test_split(X / 16.0, y, test_size=0.4, random_state=0, stratify=y)
Xtr, Xte = torch.tensor(Xtr, dtype=torch.float32), torch.tensor(Xte, dtype=torch.float32)
ytr, yte = torch.tensor(ytr), torch.tensor(yte)


def accuracy(m, x, t):
    m.eval()
    with torch.no_grad():
        a = (m(x).argmax(1) == t).float().mean().item()
    m.train()
    return a


teacher = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 256), nn.ReLU(),
                        nn.Dropout(0.3), nn.Linear(256, 10))
opt = torch.optim.Adam(teacher.parameters(), 1e-3)
for epoch in range(40):
    for idx in torch.randperm(len(Xtr)).split(64):
        x = Xtr[idx] + 0.05 * torch.randn(len(idx), 64)
        loss = F.cross_entropy(teacher(x), ytr[idx], label_smoothing=0.05)
        opt.zero_grad(); loss.backward(); opt.step()
    if epoch % 10 == 9:
        print(f"teacher epoch {epoch + 1} loss {loss.item():.3f} test acc {accuracy(teacher, Xte, yte):.3f}")

teacher.eval()
for p in teacher.parameters():
    p.requires_grad_(False)
TEMP = 4.0
student = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))
opt = torch.optim.Adam(student.parameters(), 3e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 60)
print(f"teacher {sum(p.numel() for p in teacher.parameters())} student {sum(p.numel() for p in student.parameters())} parameters")
for epoch in range(60):
    tot, hard, agree, n = 0.0, 0, 0, 0
    for idx in torch.randperm(len(Xtr)).split(64):
        lam = torch.rand(len(idx), 1)
        other = Xtr[idx[torch.randperm(len(idx))]]
        x = lam * Xtr[idx] + (1 - lam) * other
        with torch.no_grad():
            soft = F.softmax(teacher(x) / TEMP, 1)
        out = student(x)
        loss = -(soft * F.log_softmax(out / TEMP, 1)).sum(1).mean() * TEMP ** 2
        opt.zero_grad(); loss.backward(); opt.step()
        tot += loss.item() * len(idx); n += len(idx)
        hard += (out.argmax(1) == ytr[idx]).sum().item()
        agree += (out.argmax(1) == soft.argmax(1)).sum().item()
    sched.step()
    if epoch % 5 == 4:
        print(f"student epoch {epoch + 1} loss {tot / n:.3f} train acc {hard / n:.3f} agrees with teacher {agree / n:.3f} "
              f"test acc {accuracy(student, Xte, yte):.3f}")
