# Teacher and student: the frozen teacher labels unlabeled random inputs, the student never sees a true label
import torch, torch.nn as nn, torch.nn.functional as F
from sklearn.datasets import load_digits
torch.manual_seed(0)
d = load_digits(); X = torch.tensor(d.data / 16., dtype=torch.float32); Y = torch.tensor(d.target); p = torch.randperm(len(X)); X, Y = X[p], Y[p]
teacher = nn.Sequential(nn.Linear(64, 200), nn.ReLU(), nn.Dropout(.2), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))
student = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))
acc = lambda m: (m.eval()(X[1400:]).argmax(1) == Y[1400:]).float().mean().item()
opt = torch.optim.Adam(teacher.parameters(), 2e-3)
for ep in range(12):
    teacher.train()
    for b in torch.randperm(1400).split(50):
        opt.zero_grad(); F.cross_entropy(teacher(X[b]), Y[b]).backward(); opt.step()
print("teacher val acc", round(acc(teacher), 4))
teacher.requires_grad_(False).eval()
opt = torch.optim.Adam(student.parameters(), 4e-3); T = 3.0
for ep in range(1, 31):
    student.train(); s = 0.
    for b in torch.randperm(1400).split(50):
        x = X[b] + 0.1 * torch.randn(len(b), 64)
        loss = F.kl_div(F.log_softmax(student(x) / T, 1), F.softmax(teacher(x) / T, 1), reduction="batchmean") * T * T
        opt.zero_grad(); loss.backward(); opt.step(); s += loss.item()
    if ep % 3 == 0: print(f"distill epoch {ep} kl {s/28:.4f} student val acc {acc(student):.4f}")
