import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
x = torch.randn(2000, 16)
W1, W2 = torch.randn(16, 24), torch.randn(24, 5)
y = (torch.relu(x @ W1) @ W2).argmax(1)
teacher = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 5))
opt = torch.optim.Adam(teacher.parameters(), lr=4e-3)
for s in range(250):
    b = torch.randint(0, 1600, (64,))
    l = F.cross_entropy(teacher(x[b]), y[b])
    opt.zero_grad(); l.backward(); opt.step()
print("teacher loss", l.item())

student, T = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 5)), 3.0
opt = torch.optim.Adam(student.parameters(), lr=4e-3)
teacher.eval()
for s in range(350):
    b = torch.randint(0, 1600, (64,))
    with torch.no_grad():
        soft = F.softmax(teacher(x[b]) / T, dim=1)
    loss = F.kl_div(F.log_softmax(student(x[b]) / T, dim=1), soft, reduction="batchmean") * T * T
    opt.zero_grad(); loss.backward(); opt.step()
    if s % 70 == 69:
        print("student step", s + 1, "kl", round(loss.item(), 4))
acc = lambda m: (m(x[1600:]).argmax(1) == y[1600:]).float().mean().item()
print("accuracy teacher %.3f student %.3f" % (acc(teacher), acc(student)))
