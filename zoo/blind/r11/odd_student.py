# Knowledge distillation on unlabelled points: the student never sees a label, the teacher stays in eval mode
# under no_grad, temperature 4 with the T^2 factor.
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(0)
d = load_digits()
X, Y = torch.tensor(d.data / 16).float(), torch.tensor(d.target)
p = torch.randperm(len(X))
lab, unl, te = p[:600], p[600:1400], p[1400:]
T = 4.0

teacher = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.4), nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.4), nn.Linear(256, 10))
student = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))


def acc(net):
    net.eval()
    with torch.no_grad():
        return (net(X[te]).argmax(1) == Y[te]).float().mean().item()


opt = torch.optim.Adam(teacher.parameters(), 1e-3)
for epoch in range(40):
    teacher.train()
    for i in lab[torch.randperm(600)].split(40):
        loss = F.cross_entropy(teacher(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
print(f"teacher test acc {acc(teacher):.3f}")

teacher.eval()
opt = torch.optim.Adam(student.parameters(), 3e-3)
for epoch in range(120):
    student.train()
    tot = 0
    for i in unl[torch.randperm(800)].split(40):
        x = X[i] + 0.05 * torch.randn(len(i), 64)
        with torch.no_grad():
            soft = F.softmax(teacher(x) / T, 1)
        loss = F.kl_div(F.log_softmax(student(x) / T, 1), soft, reduction="batchmean") * T * T
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() / 20
    if epoch % 15 == 14:
        print(f"epoch {epoch + 1}: kd loss {tot:.4f} student test acc {acc(student):.3f}")
print(f"student (no labels seen) test accuracy {acc(student):.3f}, teacher {acc(teacher):.3f}")
